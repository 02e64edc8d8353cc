"""Opening a database file without ever overwriting a damaged one.

A new file is created under another name, migrated and renamed, so a file with the right name is always
complete. An empty or torn file, or a missing one with a log or a backup beside it, is damage, and is refused
with a sentence. Before the schema of an existing file changes, the file is copied to `<file>.bak-<old
version>`.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb

from fairlead.errors import Refusal
from fairlead.process.fsync import fsync_path
from fairlead.process.threads import CONTROL_THREADS
from fairlead.store.connection import Connection as Connection  # noqa: PLC0414 - the tables' functions import it here
from fairlead.store.file_transaction import FileConnection as FileConnection  # noqa: PLC0414 - imported here
from fairlead.store.file_transaction import FileTransaction

T = TypeVar("T")

MEMORY_LIMIT = "512MB"
# The bytes that a statement may write to disk beyond that; DuckDB's default is nine tenths of the disk.
SPILL_LIMIT = "4GB"
# The size of the log at which it is checkpointed. A checkpoint rewrites partly filled blocks, so a small log
# makes a busy file do needless work; reading 64 MB back after a crash takes well under a second.
CHECKPOINT_THRESHOLD = "64MB"

_VERSION_TABLE = """
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL DEFAULT current_timestamp::TIMESTAMP
)
"""


def is_file(con: Connection) -> bool:
    """Whether the connection is one to a file."""
    return isinstance(con, FileConnection | FileTransaction)


def file_of(con: Connection) -> FileConnection:
    """The connection to a file, for statements that only DuckDB has."""
    if isinstance(con, FileTransaction):
        # A statement that bypasses it may change any table.
        con.forget()
        return con.raw
    if not isinstance(con, FileConnection):
        raise TypeError("this belongs to a database in a file")
    return con


class DamagedFile(Refusal):
    """The file is no readable database."""


class LockedFile(Refusal):
    """Another process has the file open."""


class NewerSchema(Refusal):
    """A newer fairlead wrote the file."""


class OlderSchema(Refusal):
    """The schema is older than the base that migrations begin with."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str


def read_migrations(folder: Path) -> list[Migration]:
    """The files `NNNN_name.sql` of a folder, in order: the base, which creates the tables of its version, and the
    changes after it. `ValueError` unless they are numbered without a gap.
    """
    found = [
        Migration(int(path.stem[:4]), path.stem[5:], path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    ]
    versions = [migration.version for migration in found]
    if not versions or versions != list(range(versions[0], versions[0] + len(versions))):
        raise ValueError(f"The migrations in {folder.name} are not numbered without a gap.")
    return found


def missing_steps(place: str, version: int, steps: list[Migration]) -> list[Migration]:
    """The migrations that a database with schema `version` lacks; all for version 0, which has no tables of ours.

    Raises `NewerSchema` or `OlderSchema`; `place` names the database in their sentences.
    """
    oldest, newest = steps[0].version, steps[-1].version
    if version > newest:
        raise NewerSchema(
            f"{place} has schema {version}, this fairlead knows {newest}: "
            "start the newer fairlead that wrote it."
        )
    if 0 < version < oldest:
        raise OlderSchema(
            f"{place} has schema {version}, which is from before the first release; this fairlead upgrades schema "
            f"{oldest} and later. Start with an empty data directory and database, or restore a newer backup."
        )
    return [step for step in steps if step.version > version]


def open_file(path: Path, migrations: Path) -> FileConnection:
    """Opens `path` at the newest schema, creating the file if it is missing.

    Raises `DamagedFile`, `LockedFile`, `NewerSchema` or `OlderSchema`, each with what to do.
    """
    steps = read_migrations(migrations)
    if not path.exists():
        _refuse_remains(path)
        _make(path, steps)
    _refuse_empty(path)
    connection = _connect(path)
    try:
        version = _guarded(path, lambda: _schema_version(connection))
        missing = missing_steps(str(path), version, steps)
        if missing:
            _guarded(path, lambda: connection.execute("CHECKPOINT"))
            connection.close()
            _copy(path, backup_path(path, version))
            connection = _connect(path)
            _migrate(connection, missing)
    except BaseException:
        connection.close()
        raise
    return connection


def backup_path(path: Path, version: int) -> Path:
    """The path of the file's copy at schema `version`."""
    return path.with_name(f"{path.name}.bak-{version}")


def newest_backup(path: Path) -> Path | None:
    """The copy with the highest schema version beside the file, or None."""
    copies = [p for p in path.parent.glob(f"{path.name}.bak-*") if p.suffix[5:].isdigit()]
    return max(copies, key=lambda p: int(p.suffix[5:]), default=None)


def damaged(path: Path, what: str) -> DamagedFile:
    """The error for a damaged file, naming the newest backup if there is one."""
    backup = newest_backup(path)
    advice = f"the newest backup is {backup}" if backup else "there is no backup of it"
    return DamagedFile(f"{path} {what}; it was not changed, and {advice}.")


def _log_path(path: Path) -> Path:
    return path.with_name(path.name + ".wal")


def _refuse_remains(path: Path) -> None:
    if path.is_symlink():
        raise damaged(path, "is a link to nothing")
    if _log_path(path).exists():
        raise damaged(path, f"is missing while its log {_log_path(path).name} is there")
    if newest_backup(path) is not None:
        raise damaged(path, "is missing, although a backup of it exists")


def _refuse_empty(path: Path) -> None:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise damaged(path, "is not a file")
        if about.st_size == 0:
            raise damaged(path, "is empty")
        with path.open("r+b"):
            pass
    except OSError as error:
        raise DamagedFile(f"{path} cannot be opened for writing: {error.strerror}.") from None


def _connect(path: Path) -> FileConnection:
    connection = _guarded(path, lambda: duckdb.connect(str(path), config=_config(path)))
    try:
        path.chmod(0o600)
    except OSError as error:
        connection.close()
        raise DamagedFile(f"{path} belongs to another user: {error.strerror}.") from None
    return connection


def _config(path: Path) -> dict[str, str | bool | int | float | list[str]]:
    # DuckDB must not fetch or load extensions; spill files go to the data directory.
    return {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "threads": str(CONTROL_THREADS),
        "memory_limit": MEMORY_LIMIT,
        "checkpoint_threshold": CHECKPOINT_THRESHOLD,
        "temp_directory": str(path.with_name(path.stem + ".spill")),
        "max_temp_directory_size": SPILL_LIMIT,
    }


def _guarded(path: Path, work: Callable[[], T]) -> T:
    try:
        return work()
    except duckdb.Error as error:
        words = str(error)
        if "lock on file" in words:
            raise LockedFile(
                f"{path} is open in another process: stop that process first."
            ) from None
        if "newer version" in words or ("older version" in words and "storage" in words):
            raise NewerSchema(
                f"{path} was written by another version of DuckDB than this one."
            ) from None
        raise damaged(path, "is damaged") from error


def _schema_version(connection: FileConnection) -> int:
    # Asked of the table itself: to look for it in the catalog, DuckDB parses its own views for 10 ms of a core.
    try:
        row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    except duckdb.CatalogException:
        return 0
    return int(row[0]) if row else 0


def _make(path: Path, steps: list[Migration]) -> None:
    new = path.with_name(path.name + ".new")
    # Leftovers of an interrupted start hold nothing of value, since they never got the right name.
    for rest in (new, _log_path(new)):
        rest.unlink(missing_ok=True)
    try:
        connection = duckdb.connect(str(new), config=_config(new))
    except duckdb.Error:
        raise Refusal(
            f"{path} cannot be made: is {path.parent} writable, and is there space?"
        ) from None
    try:
        _migrate(connection, steps)
        connection.execute("CHECKPOINT")
    finally:
        connection.close()
    new.chmod(0o600)
    fsync_path(new)
    new.rename(path)
    fsync_path(path.parent)


def _migrate(connection: FileConnection, steps: list[Migration]) -> None:
    connection.execute(_VERSION_TABLE)
    for step in steps:
        connection.begin()
        try:
            connection.execute(step.sql)
            connection.execute(
                "INSERT INTO schema_version (version, name) VALUES (?, ?)",
                [step.version, step.name],
            )
            connection.commit()
        except BaseException:
            connection.rollback()
            raise


def _copy(path: Path, copy: Path) -> None:
    new = copy.with_name(copy.name + ".new")
    shutil.copyfile(path, new)
    new.chmod(0o600)
    fsync_path(new)
    new.rename(copy)
    fsync_path(copy.parent)
