"""`python -m fairlead.store.prepare <data-dir>`: creates, migrates and verifies the data files.

Runs before control, in a separate process, because a damaged file can crash the process that opens it. Creates
missing files, migrates older ones (after a copy), and reads every table of the state database to the end, so
that a damaged block is found now and not in the middle of a request. If `FAIRLEAD_CONTROL_CONFIG` is set, it
also tries the key of the sealed secrets, and with a `database_url` it migrates that database instead. Prints
one JSON line `{"password_stored": false, "has_owner": false}` and exits 0, or prints one sentence to stderr and
exits 2.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from fairlead.errors import FairleadError, Refusal
from fairlead.store.file import Connection, FileConnection, damaged, open_file
from fairlead.store.key_check import check_key
from fairlead.store.sealer import Sealer, load_sealer
from fairlead.store.state_database import MIGRATIONS as MIGRATIONS  # noqa: PLC0414 - imported here
from fairlead.store.state_database import open_state, open_state_file
from fairlead.store.state_database import state_path as state_path  # noqa: PLC0414 - imported here
from fairlead.store.status import StoreStatus

ROWS_AT_ONCE = 1000


def usage_path(data_dir: Path) -> Path:
    """The path of the usage database."""
    return data_dir / "usage.duckdb"


def issuer_path(data_dir: Path) -> Path:
    """The path of the token issuer's database."""
    return data_dir / "issuer.duckdb"


def prepare(data_dir: Path) -> StoreStatus:
    """Opens, migrates and reads both files. `Refusal` says what is wrong."""
    make_data_dir(data_dir)
    connection = open_file(usage_path(data_dir), MIGRATIONS / "usage")
    connection.close()
    config = _config()
    if config.get("issuer_enabled"):
        open_file(issuer_path(data_dir), MIGRATIONS / "issuer").close()
    keys = (config.get("secret_key"), config.get("other_secret_key"))
    sealer = load_sealer(data_dir, *keys) if config else None
    if (database_url := config.get("database_url")) is not None:
        import asyncio  # noqa: PLC0415 - slow to load, and of no use for a file

        return asyncio.run(_check_server(data_dir, database_url, sealer))
    path = state_path(data_dir)
    connection = open_state_file(data_dir)
    try:
        read_to_the_end(connection)
        return _status(connection, sealer)
    except duckdb.Error as error:
        raise damaged(path, "is damaged") from error
    finally:
        connection.close()


def _status(connection: Connection, sealer: Sealer | None) -> StoreStatus:
    stored = connection.execute("SELECT 1 FROM users WHERE password_hash IS NOT NULL LIMIT 1")
    password_stored = stored.fetchone() is not None
    owner = connection.execute("SELECT 1 FROM users WHERE role = 'owner' LIMIT 1").fetchone()
    if sealer is not None:
        check_key(connection, sealer)
    return StoreStatus(password_stored, owner is not None)


async def _check_server(data_dir: Path, database_url: str, sealer: Sealer | None) -> StoreStatus:
    # Nothing else runs in this process that a blocking call could hold up.
    database = open_state(data_dir, database_url, "prepare")
    try:
        return await database.write(lambda con: _status(con, sealer))
    finally:
        await database.close()


def make_data_dir(data_dir: Path) -> None:
    """Creates the directory (0700) if it is missing; `Refusal` when it is not writable."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if data_dir.stat().st_uid == os.getuid():
            data_dir.chmod(0o700)
    except OSError as error:
        raise Refusal(f"{data_dir} cannot be made the data directory: {error.strerror}.") from None
    if not os.access(data_dir, os.R_OK | os.W_OK | os.X_OK):
        raise Refusal(
            f"{data_dir} cannot be written to: give it to the user that fairlead runs as."
        )


def read_to_the_end(connection: FileConnection) -> None:
    """Reads every row of every table."""
    names = connection.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY 1"
    ).fetchall()
    for (name,) in names:
        quoted = str(name).replace('"', '""')
        result = connection.execute(f'SELECT * FROM "{quoted}"')
        while result.fetchmany(ROWS_AT_ONCE):
            pass


def _config() -> dict[str, Any]:
    """Control's configuration, which the supervisor validated; empty without one."""
    config: dict[str, Any] = json.loads(os.environ.get("FAIRLEAD_CONTROL_CONFIG", "{}"))
    return config


def main(arguments: list[str]) -> int:
    """The entry point; returns the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m fairlead.store.prepare <data-dir>\n")
        return 2
    os.umask(0o077)
    try:
        prepared = prepare(Path(arguments[0]).expanduser().absolute())
    except Refusal as refusal:
        sys.stderr.write(f"{refusal.sentence}\n")
        return 2
    except FairleadError as error:
        sys.stderr.write(f"The state database: {error}\n")
        return 2
    except json.JSONDecodeError:
        sys.stderr.write("FAIRLEAD_CONTROL_CONFIG cannot be read.\n")
        return 2
    sys.stdout.write(json.dumps(asdict(prepared)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
