"""Settled requests as they lie in a data directory."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb

from fairlead.usage.record import COLUMNS


def stored_records(data_dir: Path) -> list[dict[str, Any]]:
    """Every settled request of an instance that has ended: in `usage.duckdb` or still to be taken in."""
    with duckdb.connect(str(data_dir / "usage.duckdb"), read_only=True) as database:
        cursor = database.execute("select * from requests")
        names = [column[0] for column in cursor.description]
        stored = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        taken_in = {row[0] for row in database.execute("select name from segments").fetchall()}
    return stored + spooled_records(data_dir, without=taken_in)


def spooled_records(data_dir: Path, without: Collection[str] = ()) -> list[dict[str, Any]]:
    """Every record in the spool, but for the segments named; a last line that is not whole is left out.

    What a line leaves out is not known, which is None.
    """
    unknown = dict.fromkeys(COLUMNS)
    found: list[dict[str, Any]] = []
    for path in sorted((data_dir / "spool").iterdir()):
        if path.is_file() and path.stem not in without:
            with contextlib.suppress(FileNotFoundError):  # taken in meanwhile
                lines = path.read_bytes().split(b"\n")[:-1]
                found += [unknown | json.loads(line) for line in lines]
    return found
