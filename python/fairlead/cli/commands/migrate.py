"""`fairlead migrate`: the state of an instance from its file to PostgreSQL, or back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json
from fairlead.cli.output import print_message, show_json

if TYPE_CHECKING:
    from fairlead.store.copying import CopiedTable
    from fairlead.store.file import FileConnection
    from fairlead.store.postgresql.connection import Raw
    from fairlead.store.rows import TableSum

_LIVE_MS = 10_000


def migrate(
    to: Annotated[
        str, typer.Option(help="The store to copy to: postgresql or embedded.", metavar="STORE")
    ] = "postgresql",
    data_dir: DataDir = DATA_DIR,
    as_json: Json = False,
) -> None:
    """Copy the state to the database of FAIRLEAD_DATABASE_URL, or from it to the data directory's file.

    The instance must be stopped. The source is not changed. If the copy is interrupted, run the command again: it
    resumes.
    """
    from fairlead.errors import Refusal
    from fairlead.serve.directory import DataDirectory
    from fairlead.settings.serve import ServeSettings
    from fairlead.store.state_database import check_postgresql

    if to not in ("postgresql", "embedded"):
        raise CommandFailed(f"--to is {to}: name postgresql or embedded.")
    folder = data_dir.expanduser().absolute()
    try:
        given = ServeSettings.load(data_dir=folder).database_url
        if given is None:
            raise CommandFailed(
                "FAIRLEAD_DATABASE_URL is not set: name the database, postgresql://user@host/database."
            )
        check_postgresql()
        with DataDirectory(folder):
            way = _to_postgresql if to == "postgresql" else _to_embedded
            totals = way(folder, given.get_secret_value())
    except Refusal as refusal:
        raise CommandFailed(refusal.sentence) from None
    rows = sum(each.rows for each in totals.values())
    if as_json:
        show_json(
            {name: {"rows": each.rows, "sha256": each.sha256} for name, each in totals.items()}
        )
        return
    print_message(
        f"{rows} rows of {len(totals)} tables are in the {to} store, read back and compared."
    )
    print_message(_next_step(to))


def _next_step(to: str) -> str:
    if to == "embedded":
        return "Start fairlead without FAIRLEAD_DATABASE_URL, with the same secret.key."
    return (
        "Start every node with FAIRLEAD_DATABASE_URL and the key of this one "
        "(FAIRLEAD_SECRET_KEY is the content of secret.key)."
    )


def _report(table: CopiedTable) -> None:
    note = "" if table.is_new else " (copied before)"
    print(f"{table.name}: {table.total.rows} rows{note}", file=sys.stderr)


def _to_postgresql(folder: Path, url: str) -> dict[str, TableSum]:
    from fairlead.errors import Refusal
    from fairlead.store.copying import copy_tables
    from fairlead.store.file_rows import FileTables
    from fairlead.store.postgresql.rows import PostgresqlTables
    from fairlead.store.postgresql.schema import connect, migrate
    from fairlead.store.state_database import MIGRATIONS, state_path

    if not state_path(folder).exists():
        raise Refusal(
            f"{state_path(folder)} does not exist: name the data directory with --data-dir."
        )
    migrate(url, MIGRATIONS / "state")
    with _copy_of(folder) as file, connect(url, "migrate") as raw:
        _refuse_live(raw)
        return copy_tables(FileTables(file), PostgresqlTables(raw), _report)


def _to_embedded(folder: Path, url: str) -> dict[str, TableSum]:
    from fairlead.errors import Refusal
    from fairlead.store.copying import copy_tables
    from fairlead.store.file_rows import FileTables
    from fairlead.store.postgresql.rows import PostgresqlTables
    from fairlead.store.postgresql.schema import connect, migrate
    from fairlead.store.state_database import MIGRATIONS, state_path

    path = state_path(folder)
    # A log that another file has left would be read into the new one.
    for each in (path, _log_of(path)):
        if each.exists():
            raise Refusal(
                f"{each} exists: move it away, or name another directory with --data-dir."
            )
    migrate(url, MIGRATIONS / "state")
    growing = path.with_name(f"{path.name}.incoming")
    with connect(url, "migrate") as raw:
        _refuse_live(raw)
        _follow_usage(folder, url)
        file = _open_growing(growing)
        try:
            # One moment of the source for all of its tables.
            with raw.transaction():
                raw.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                totals = copy_tables(PostgresqlTables(raw), FileTables(file), _report)
        finally:
            file.close()
    growing.rename(path)
    # A relay must not begin with a snapshot of another state.
    (folder / "snapshot.json").unlink(missing_ok=True)
    return totals


def _open_growing(growing: Path) -> FileConnection:
    """The file of an earlier copy, which is resumed. A file without notes of tables is started again: it has
    nothing yet, or everything that the source had when that copy ended.
    """
    from fairlead.store.file import open_file
    from fairlead.store.file_rows import FileTables
    from fairlead.store.state_database import MIGRATIONS

    file = open_file(growing, MIGRATIONS / "state")
    if FileTables(file).copied():
        return file
    file.close()
    for each in (growing, _log_of(growing)):
        each.unlink(missing_ok=True)
    return open_file(growing, MIGRATIONS / "state")


def _follow_usage(folder: Path, url: str) -> None:
    """Brings the data directory's usage to what all nodes have served: the log of it stays behind."""
    import asyncio

    import psycopg

    from fairlead.errors import Refusal
    from fairlead.store.postgresql.schema import first_line
    from fairlead.usage.ingestion.rebuild import follow_usage

    def report(segments: int, of: int) -> None:
        print(f"usage: {segments} of {of} segments", file=sys.stderr)

    try:
        asyncio.run(follow_usage(folder, url, report))
    except psycopg.Error as error:
        raise Refusal(f"The log of usage cannot be read: {first_line(error)}.") from None


@contextmanager
def _copy_of(folder: Path) -> Iterator[FileConnection]:
    """The embedded state at the newest schema, as a copy: the file itself is neither migrated nor written."""
    import shutil

    from fairlead.store.state_database import open_state_file, state_path

    path, place = state_path(folder), folder / "migrate"
    # The file of a copy that was killed.
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    try:
        for each in (path, _log_of(path)):
            if each.exists():
                shutil.copyfile(each, place / each.name)
        connection = open_state_file(place)
        try:
            yield connection
        finally:
            connection.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def _refuse_live(raw: Raw) -> None:
    from fairlead.errors import Refusal

    found = raw.execute(
        "SELECT count(*), min(host) FROM control_nodes "
        "WHERE seen_at_ms > epoch_ms(clock_timestamp()) - $1",
        [_LIVE_MS],
    ).fetchone()
    if found is not None and found[0]:
        raise Refusal(
            f"{found[0]} running fairlead use this database (one at {found[1]}): stop them first."
        )
