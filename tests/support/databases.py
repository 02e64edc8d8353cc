"""Empty database files of the newest schema: migrated once in a run and copied from then on.

Running every migration costs a tenth of a second of a core, for each test that opens a file. That the migrations run is
shown by `tests/unit/python/store`, by the tests of each migration, and by every gateway that is started.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Literal

from fairlead.store.database import Database
from fairlead.store.file import Connection, open_file
from fairlead.store.prepare import MIGRATIONS, make_data_dir

Kind = Literal["state", "usage"]


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
    return Database.open(place_file(folder, kind), MIGRATIONS / kind)


@functools.cache
def _migrated(kind: Kind) -> bytes:
    """What stands in such a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{kind}.duckdb"
        open_file(path, MIGRATIONS / kind).close()
        return path.read_bytes()
