from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.store.database import Database
from tests.support.databases import open_fresh_database
from tests.support.records import usage_record


@pytest.fixture
async def usage(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_fresh_database(tmp_path, "usage")
    yield database
    await database.close()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


@pytest.fixture
def record() -> Any:
    """Makes a record as the relay writes it: `record(request_id, **other fields)`."""
    return usage_record


@pytest.fixture
def lines(record: Any) -> Any:
    """Makes the content of a segment: one line for each request id."""

    def make(*request_ids: str, **fields: Any) -> bytes:
        return b"".join(json.dumps(record(each, **fields)).encode() + b"\n" for each in request_ids)

    return make
