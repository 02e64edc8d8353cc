"""Empty database files of the newest schema: migrated once in a run and copied from then on.

Running the migrations costs a tenth of a second of a core, for each test that opens a file. That they run is
shown by `tests/unit/python/store` and by every gateway that a test starts.

With `pytest --store postgresql` or `cluster` the state of every data directory is in a database of its own instead.
"""

from __future__ import annotations

import functools
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fairlead.store.database import Database
from fairlead.store.file import Connection, open_file
from fairlead.store.prepare import MIGRATIONS, make_data_dir

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

Kind = Literal["state", "usage"]
STORES = ("embedded", "postgresql", "cluster")
"""Where the state of tests' gateways is: `pytest --store`. With `cluster`, those that tests share are of two nodes."""


class ChosenStore:
    """The store of this run, and the PostgreSQL server behind it, which is started when it is first needed."""

    def __init__(self) -> None:
        self.name = "embedded"
        self._ending = ExitStack()
        self._server: PostgresqlServer | None = None
        self._urls: dict[Path, str] = {}

    def server(self) -> PostgresqlServer:
        """The server of this run, with its template."""
        if self._server is None:
            from tests.support.postgresql import PostgresqlServer

            self._server = self._ending.enter_context(PostgresqlServer.start())
            self._server.make_template()
        return self._server

    def url_of(self, data_dir: Path) -> str | None:
        """The database of a data directory, always the same; None for the embedded store."""
        if self.name == "embedded":
            return None
        if data_dir not in self._urls:
            self._urls[data_dir] = self.server().migrated()
        return self._urls[data_dir]

    def end(self) -> None:
        """Stops the server."""
        self._ending.close()
        self._server = None


CHOSEN_STORE = ChosenStore()


def place_files(data_dir: Path) -> Path:
    """Makes the data directory of an instance that was never used, unless it has files already."""
    make_data_dir(data_dir)
    for kind in ("state", "usage"):
        if not (data_dir / f"{kind}.duckdb").exists():
            place_file(data_dir, kind)
    return data_dir


def place_file(folder: Path, kind: Kind) -> Path:
    """Puts an empty `state.duckdb` or `usage.duckdb` into a folder: its path."""
    path = folder / f"{kind}.duckdb"
    path.touch(mode=0o600)
    path.write_bytes(_migrated(kind))
    return path


def open_fresh_file(folder: Path, kind: Kind) -> Connection:
    """A connection to an empty `state.duckdb` or `usage.duckdb` in a folder."""
    return open_file(place_file(folder, kind), MIGRATIONS / kind)


def open_fresh_database(folder: Path, kind: Kind) -> Database:
    """An empty state or usage database in a folder, with its writer and readers."""
    url = CHOSEN_STORE.url_of(folder) if kind == "state" else None
    if url is not None:
        from fairlead.store.state_database import open_state

        return open_state(folder, url, "test")
    return Database.open(place_file(folder, kind), MIGRATIONS / kind)


@functools.cache
def _migrated(kind: Kind) -> bytes:
    """What stands in such a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{kind}.duckdb"
        open_file(path, MIGRATIONS / kind).close()
        return path.read_bytes()
