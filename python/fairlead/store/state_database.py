"""The place of the state database: the data directory's file, or PostgreSQL with `FAIRLEAD_DATABASE_URL`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead.errors import Refusal
from fairlead.process.extra import install_command, is_installed
from fairlead.store.file import FileConnection, open_file

if TYPE_CHECKING:
    from fairlead.store.database import Database

MIGRATIONS: Final = Path(__file__).parent / "migrations"


def state_path(data_dir: Path) -> Path:
    """The path of the state database."""
    return data_dir / "state.duckdb"


def open_state_file(data_dir: Path) -> FileConnection:
    """A connection to the embedded state database at the newest schema. `Refusal` says what is wrong."""
    return open_file(state_path(data_dir), MIGRATIONS / "state")


def open_state(data_dir: Path, database_url: str | None, process: str) -> Database:
    """Opens the state database and migrates it; blocking, for the start of a process. `process` names this one to
    others of the same database. `Refusal` says what is wrong.
    """
    # The check of an embedded store before a start does without the writer and its log.
    from fairlead.store.database import Database  # noqa: PLC0415

    if database_url is None:
        return Database.open(state_path(data_dir), MIGRATIONS / "state", remembers_reads=True)
    check_postgresql()
    from fairlead.store.postgresql.engine import PostgresqlEngine  # noqa: PLC0415 - an extra
    from fairlead.store.postgresql.rows import is_unfinished  # noqa: PLC0415 - an extra
    from fairlead.store.postgresql.schema import connect, migrate  # noqa: PLC0415 - an extra

    migrate(database_url, MIGRATIONS / "state")
    with connect(database_url, "start") as raw:
        if is_unfinished(raw):
            raise Refusal(
                "A copy into the database of FAIRLEAD_DATABASE_URL is not complete: run `fairlead "
                "migrate` again, which resumes it."
            )
    return Database(PostgresqlEngine(database_url, process))


def check_postgresql() -> None:
    """Raises `Refusal` where the driver is not installed."""
    if not is_installed("postgresql"):
        raise Refusal(
            "FAIRLEAD_DATABASE_URL needs the driver of PostgreSQL: run "
            f"`{install_command('postgresql')}`, or leave the setting out for the embedded database."
        )
