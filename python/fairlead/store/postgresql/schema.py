"""The first connection to a PostgreSQL database: whether it can be used, and its schema.

Everything of ours is in the schema `fairlead`. The migrations are those of the embedded store, translated
(`statements.py`); `functions.sql` goes before them, `indexes.sql` and `usage_log.sql` after, whenever one of these has
changed.
Several processes may start at once: an advisory lock lets one migrate while the others wait.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
from psycopg import RawCursor
from psycopg.conninfo import conninfo_to_dict

from fairlead.errors import Refusal
from fairlead.store.file import Migration, missing_steps, read_migrations
from fairlead.store.postgresql.connection import SCHEMA, Raw, adapt, connection_info
from fairlead.store.postgresql.statements import for_postgresql

HERE: Final = Path(__file__).parent
OLDEST_SERVER: Final = 140_000
# Any number, as long as it is always this one.
MIGRATION_LOCK: Final = 0x6661_6972_6C65_6164
LOCK_WITHIN_MS: Final = 60_000

_TABLES: Final = f"""
CREATE TABLE IF NOT EXISTS {SCHEMA}.schema_version (
    version INTEGER NOT NULL PRIMARY KEY,
    name VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')
);
CREATE TABLE IF NOT EXISTS {SCHEMA}.schema_files (
    name VARCHAR NOT NULL PRIMARY KEY,
    sha256 VARCHAR NOT NULL
)
"""


@contextmanager
def connect(url: str, purpose: str) -> Iterator[Raw]:
    """A separate connection in autocommit, closed at the end. Raises `Refusal` when the database cannot be
    reached.
    """
    try:
        raw = psycopg.connect(
            connection_info(url, purpose), autocommit=True, cursor_factory=RawCursor
        )
    except psycopg.Error as error:
        raise Refusal(f"{_place(url)} cannot be reached: {first_line(error)}.") from None
    with raw:
        adapt(raw)
        raw.execute(f"SET search_path = {SCHEMA}, pg_catalog; SET timezone = 'UTC'")
        yield raw


def migrate(url: str, migrations: Path) -> None:
    """Brings the database to the newest schema, making it in an empty one. `Refusal` says what is wrong."""
    steps = read_migrations(migrations)
    with connect(url, "migration") as raw:
        _check_server(url, raw)
        try:
            raw.execute(f"SET lock_timeout = {LOCK_WITHIN_MS}")
            raw.execute("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK])
            _migrate(raw, steps)
        except psycopg.errors.LockNotAvailable:
            raise Refusal(
                f"{_place(url)} is being migrated by another process for more than "
                f"{LOCK_WITHIN_MS // 1000} s: wait until it has ended."
            ) from None
        except psycopg.errors.InsufficientPrivilege as error:
            raise Refusal(
                f"{_place(url)} refuses what a migration needs: {first_line(error)}. Make the user the "
                f"owner of the database or of the schema {SCHEMA}."
            ) from None
        except psycopg.Error as error:
            raise Refusal(f"{_place(url)} could not be migrated: {first_line(error)}.") from None


def schema_version(raw: Raw) -> int:
    """The newest applied migration; 0 in a new database."""
    table = raw.execute("SELECT to_regclass($1)", [f"{SCHEMA}.schema_version"]).fetchone()
    if table is None or table[0] is None:
        return 0
    row = raw.execute(f"SELECT coalesce(max(version), 0) FROM {SCHEMA}.schema_version").fetchone()
    return int(row[0]) if row else 0


def _check_server(url: str, raw: Raw) -> None:
    if raw.info.server_version < OLDEST_SERVER:
        raise Refusal(
            f"{_place(url)} is PostgreSQL {raw.info.server_version // 10_000}: "
            f"fairlead needs {OLDEST_SERVER // 10_000} or newer."
        )
    encoding = raw.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise Refusal(
            f"{_place(url)} keeps texts as {encoding}: make a database with ENCODING 'UTF8'."
        )
    row = raw.execute("SELECT pg_is_in_recovery()").fetchone()
    if row and row[0]:
        raise Refusal(
            f"{_place(url)} is a replica: name the primary, or several hosts with "
            "target_session_attrs=read-write."
        )


def _migrate(raw: Raw, steps: list[Migration]) -> None:
    missing = missing_steps("The database", schema_version(raw), steps)
    make_schema(raw)
    apply_steps(raw, missing)
    _run_file(raw, "indexes.sql")
    _run_file(raw, "usage_log.sql")


def make_schema(raw: Raw) -> None:
    """Creates the objects that exist before the first migration."""
    if schema_version(raw) == 0:
        raw.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        raw.execute(_TABLES)
    _run_file(raw, "functions.sql")


def apply_steps(raw: Raw, steps: Sequence[Migration]) -> None:
    """Applies migrations, each in a separate transaction."""
    for step in steps:
        with raw.transaction():
            raw.execute(for_postgresql(step.sql))
            raw.execute(
                "INSERT INTO schema_version (version, name) VALUES ($1, $2)",
                [step.version, step.name],
            )


def _run_file(raw: Raw, name: str) -> None:
    """Runs one of fairlead's files unless it has already run unchanged; each can run any number of times."""
    text = (HERE / name).read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    done = raw.execute("SELECT sha256 FROM schema_files WHERE name = $1", [name]).fetchone()
    if done is not None and done[0] == digest:
        return
    with raw.transaction():
        raw.execute(text)
        raw.execute(
            "INSERT INTO schema_files (name, sha256) VALUES ($1, $2) "
            "ON CONFLICT (name) DO UPDATE SET sha256 = excluded.sha256",
            [name, digest],
        )


def _place(url: str) -> str:
    """The database without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return "The database of FAIRLEAD_DATABASE_URL"
    host, port = parts.get("host") or "localhost", parts.get("port") or "5432"
    return f"PostgreSQL at {host}:{port} (database {parts.get('dbname') or 'of the same name as the user'})"


def first_line(error: psycopg.Error) -> str:
    """The server's words in one line."""
    text = error.diag.message_primary or str(error).strip().splitlines()[0:1] or [""]
    words = text if isinstance(text, str) else text[0]
    return " ".join(words.split()).rstrip(".")[:300] or type(error).__name__
