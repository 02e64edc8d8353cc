"""What is older than the operator wants is deleted, slice by slice, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.store.database import Database
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.retention import delete_before
from fairlead.usage.ingestion.segment_store import SegmentStore

pytestmark = pytest.mark.anyio

HOUR = 3_600_000


async def test_old_requests_go_and_young_ones_stay(
    usage: Database, spool: Path, lines: Any
) -> None:
    ages = [0, 1, HOUR, 5 * HOUR, 90 * HOUR, 100 * HOUR - 1, 100 * HOUR, 200 * HOUR]
    data = b"".join(lines(f"r{ts}", ts_ms=ts) for ts in ages)
    (spool / "w-0.ndjson").write_bytes(data)
    await Ingest(SegmentStore(usage, spool), spool).ingest()

    assert await delete_before(usage, 100 * HOUR) == 6
    assert await delete_before(usage, 100 * HOUR) == 0

    left = await usage.read(
        lambda con: con.execute("SELECT ts_ms FROM requests ORDER BY ts_ms").fetchall()
    )
    assert left == [(100 * HOUR,), (200 * HOUR,)]


async def test_of_nothing_nothing_is_deleted(usage: Database) -> None:
    assert await delete_before(usage, 2**60) == 0
