"""Scheduled backups: when one is due, which stay, and what is told of one that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.gateway.backups.folder import DAY_MS, Folder, Retention
from fairlead.gateway.backups.schedule import HOUR_MS, is_due, make_if_due
from fairlead.moment import now_ms
from fairlead.records.webhook_endpoints import insert_endpoint, new_endpoint
from fairlead.store.blobs.directory import Directory

pytestmark = pytest.mark.anyio

AT_MS = 2_000_000_000_000


@pytest.mark.parametrize(
    ("newest_ms", "every_hours", "due"),
    [
        (None, 24, True),
        (None, 0, False),
        (AT_MS - 24 * HOUR_MS, 24, True),
        (AT_MS - 24 * HOUR_MS + 1, 24, False),
        (AT_MS, 1, False),
        (AT_MS + HOUR_MS // 2, 1, False),
        # The clock stood wrong when the newest was made.
        (AT_MS + 2 * HOUR_MS, 1, True),
    ],
)
def test_when_one_is_due(newest_ms: int | None, every_hours: int, due: bool) -> None:
    assert is_due(newest_ms, every_hours, AT_MS) is due


def copies(tmp_path: Path, *ages_days: int) -> Folder:
    folder = Folder(tmp_path, Directory(tmp_path))
    for age in ages_days:
        folder.new_file()
        name = f"state-{AT_MS - age * DAY_MS:013d}-0a0b0c-manual.duckdb"
        (tmp_path / "backups" / name).write_bytes(b"x")
    return folder


@pytest.mark.parametrize(
    ("retention", "stay"),
    [
        (Retention(count=20, days=0), [0, 5, 9]),
        (Retention(count=2, days=0), [0, 5]),
        (Retention(count=20, days=7), [0, 5]),
        (Retention(count=1, days=7), [0]),
    ],
)
async def test_which_stay(tmp_path: Path, retention: Retention, stay: list[int]) -> None:
    folder = copies(tmp_path, 0, 5, 9)
    await folder.prune(retention, AT_MS)
    assert [(AT_MS - each.created_at_ms) // DAY_MS for each in await folder.list()] == stay


async def test_the_newest_stays_at_any_age(tmp_path: Path) -> None:
    folder = copies(tmp_path, 30, 40)
    await folder.prune(Retention(count=20, days=7), AT_MS)
    assert [(AT_MS - each.created_at_ms) // DAY_MS for each in await folder.list()] == [30]


async def test_one_is_made_when_it_is_due(management) -> None:
    services = management.services
    assert await make_if_due(services, now_ms())
    assert await make_if_due(services, now_ms())
    listed = (await management.ask("GET", "/api/db-backups"))["backups"]
    assert [each["reason"] for each in listed] == ["scheduled"]
    assert await make_if_due(services, now_ms() + 25 * HOUR_MS)
    listed = (await management.ask("GET", "/api/db-backups"))["backups"]
    assert [each["reason"] for each in listed] == ["scheduled", "scheduled"]


async def test_one_that_fails_is_told_of(management) -> None:
    services = management.services
    sealer = services.state.sealer
    # Of an address that is never called: the delivery stays where it can be seen.
    hook = new_endpoint("gateway", "https://192.0.2.1/", ["backup.failed"], now_ms())
    await services.state.record(
        lambda con: insert_endpoint(con, sealer, hook, "whsec_" + "QUJD" * 8)
    )
    (services.data_dir / "backups").write_text("a file where the folder should be")
    assert not await make_if_due(services, now_ms())
    (delivery,) = (await management.ask("GET", f"/api/webhooks/{hook.id}/deliveries"))["deliveries"]
    assert delivery["event"] == "backup.failed"
