"""`python -m fairlead.store.prepare <data-dir>`: creates, migrates and verifies the data files.

Runs before control, in a process of its own, because a damaged file can crash the process that opens it.
Creates missing files, migrates older ones (after a copy), and reads every table of the state database to the
end, so that a damaged block is found now and not in the middle of a request. Where `FAIRLEAD_CONTROL_CONFIG` is
set, it also tries the key of the sealed secrets. Prints one JSON line `{"password_stored": false, "has_owner":
false}` and exits 0, or prints one sentence to stderr and exits 2.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from fairlead.errors import Refusal
from fairlead.store.file import Connection, damaged, open_file
from fairlead.store.key_check import check_key
from fairlead.store.sealer import Sealer, load_key
from fairlead.store.status import StoreStatus

MIGRATIONS = Path(__file__).parent / "migrations"
ROWS_AT_ONCE = 1000


def state_path(data_dir: Path) -> Path:
    """The path of the state database."""
    return data_dir / "state.duckdb"


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
    path = state_path(data_dir)
    connection = open_file(path, MIGRATIONS / "state")
    try:
        read_to_the_end(connection)
        stored = connection.execute("SELECT 1 FROM users WHERE password_hash IS NOT NULL")
        password_stored = stored.fetchone() is not None
        owner = connection.execute("SELECT 1 FROM users WHERE role = 'owner'").fetchone()
        if config:
            check_key(connection, Sealer(load_key(data_dir, config.get("secret_key"))))
    except duckdb.Error as error:
        raise damaged(path, "is damaged") from error
    finally:
        connection.close()
    return StoreStatus(password_stored, owner is not None)


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


def read_to_the_end(connection: Connection) -> None:
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
    except json.JSONDecodeError:
        sys.stderr.write("FAIRLEAD_CONTROL_CONFIG cannot be read.\n")
        return 2
    sys.stdout.write(json.dumps(asdict(prepared)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
