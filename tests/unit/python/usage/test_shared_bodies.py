"""Kept bodies in a store of files: every node reads them, one holds their bounds, and what was deleted stays so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from fairlead.errors import StorageUnavailable
from fairlead.moment import now_ms
from fairlead.records.kept_bodies import FOLDER, HOUR_MS, BodyName
from fairlead.store.blobs import bucket as bucket_module
from fairlead.store.blobs.blob import chunks_of
from fairlead.store.blobs.bounded_calls import BoundedCalls
from fairlead.store.blobs.location import blobs_of
from fairlead.store.file import Connection
from fairlead.store.meta import PURGED_BEFORE, write_meta
from fairlead.usage.bodies import shared_bodies as module
from fairlead.usage.bodies.body_bounds import MIB, BodyBounds, read_bounds
from fairlead.usage.bodies.body_sweep import BodySweep, stored_bodies
from fairlead.usage.bodies.shared_bodies import SharedBodyKeeper
from tests.support.kept_bodies import HOSTILE, put_body, settle, settle_with_body
from tests.support.management import Management, hold_keys, run_management
from tests.support.s3_server import ACCESS_KEY_ID, SECRET_ACCESS_KEY, S3Server

pytestmark = pytest.mark.anyio

DAY_MS = 86_400_000


@pytest.fixture
def server() -> Iterator[S3Server]:
    with S3Server() as running:
        yield running


@pytest.fixture(params=["directory", "bucket"])
def files_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "bucket":
        found: S3Server = request.getfixturevalue("server")
        return found.url
    (tmp_path / "files").mkdir()
    return f"file://{tmp_path / 'files'}"


@pytest.fixture
async def management(files_url: str, tmp_path: Path) -> AsyncIterator[Management]:
    """A node over a store of files."""
    async with run_management(
        tmp_path / "data",
        files_url=files_url,
        files_access_key_id=ACCESS_KEY_ID,
        files_secret_access_key=SECRET_ACCESS_KEY,
    ) as running:
        await hold_keys(running.services, "k", "other")
        yield running


@pytest.fixture
def second(management: Management, tmp_path: Path) -> SharedBodyKeeper:
    """Another node with the same state and the same store, whose task does not run."""
    return node(management, tmp_path / "second")


def node(management: Management, data_dir: Path) -> SharedBodyKeeper:
    data_dir.mkdir(exist_ok=True)
    return SharedBodyKeeper(replace(management.services, data_dir=data_dir))


def put_at(keeper: SharedBodyKeeper, name: BodyName, content: bytes | None = None) -> Path:
    """A file in the spool of a node."""
    return put_body(keeper._services, name, content)


async def stored(management: Management) -> list[str]:
    """The request ids of what the store has, the oldest first."""
    blobs = await blobs_of(management.services).list(FOLDER)
    return [blob.file.split("_", 1)[1].rsplit("_", 1)[0] for blob in blobs]


async def bounds_of(management: Management, **changed: Any) -> BodyBounds:
    return replace(await management.services.state.read(read_bounds), **changed)


async def purge_elsewhere(management: Management, before_ms: int) -> None:
    """What another node that purges leaves for this one to know."""

    def note(con: Connection) -> None:
        write_meta(con, PURGED_BEFORE, str(before_ms))

    await management.services.state.database.write(note)


async def test_what_one_node_wrote_every_node_reads(
    management: Management, second: SharedBodyKeeper
) -> None:
    name = await settle(management, "req_a1", now_ms())
    put_at(second, name)
    path = "/api/usage/logs/req_a1"
    await management.refused("GET", f"{path}/body", expect=404)
    await second.take_in()
    assert not list(second.spool.iterdir())
    assert (await management.ask("GET", f"{path}/body"))["request"]["body"] == HOSTILE
    await management.ask("GET", f"{path}/headers")
    log = (await management.ask("GET", "/api/usage/request-logs"))["logs"]
    assert [row["hasBodies"] for row in log] == [True]
    missing = BodyName(name.ts_ms, "req_a2", "k")
    assert await second.has([missing, name]) == [False, True]
    assert await second.find(missing) is None


async def test_what_a_node_wrote_itself_is_read_before_it_is_brought(
    management: Management, second: SharedBodyKeeper
) -> None:
    name = BodyName(now_ms(), "req_a1", "k")
    sealed = put_at(second, name).read_bytes()
    assert (await second.find(name), await second.has([name])) == (sealed, [True])
    await second.take_in()
    assert (await second.find(name), await second.has([name])) == (sealed, [True])


async def test_the_task_brings_what_workers_write(management: Management) -> None:
    await settle_with_body(management, "req_a1", now_ms())
    async with asyncio.timeout(10):
        while await stored(management) != ["req_a1"]:
            await asyncio.sleep(0.05)
    await management.ask("GET", "/api/usage/logs/req_a1/body")
    folder = management.services.data_dir / FOLDER
    assert not folder.exists(), "nothing is kept in the data directory"


async def test_a_node_that_was_killed_after_the_store_had_it_doubles_nothing(
    management: Management, second: SharedBodyKeeper
) -> None:
    at = now_ms()
    name, gone = BodyName(at, "req_a1", "k"), BodyName(at - 5, "req_a2", "k")
    blobs = blobs_of(management.services)
    for each in (name, gone):
        left = put_at(second, each)
        await blobs.write(each.path, chunks_of(left), left.stat().st_size)
    await blobs.remove(gone.path)
    await purge_elsewhere(management, at)
    await second.take_in()
    assert not list(second.spool.iterdir())
    assert await stored(management) == ["req_a1"]


@pytest.mark.parametrize("reason", ["key", "no log", "purge", "age"])
async def test_what_was_deleted_does_not_come_back_from_a_spool(
    management: Management, second: SharedBodyKeeper, reason: str
) -> None:
    at = now_ms()
    put_at(second, BodyName(at - 8 * DAY_MS if reason == "age" else at - 60_000, "req_a1", "other"))
    put_at(second, BodyName(at, "req_a2", "k"))
    put_at(second, BodyName(at, "req_a3", None))
    if reason == "key":
        await management.ask("DELETE", "/api/keys/other")
    elif reason == "no log":
        await management.ask("PATCH", "/api/keys/other", {"noLog": True})
    elif reason == "purge":
        await purge_elsewhere(management, at - 1)
    await second.take_in()
    assert await stored(management) == ["req_a2", "req_a3"]
    assert not list(second.spool.iterdir())


async def test_what_is_brought_while_it_is_deleted_goes_with_the_next_sweep(
    management: Management, second: SharedBodyKeeper
) -> None:
    at = now_ms()
    for name in (BodyName(at - 5, "req_a1", "k"), BodyName(at, "req_a2", "other")):
        put_at(second, name)
    await second.take_in()
    await second.sweep()
    assert await stored(management) == ["req_a1", "req_a2"]
    await purge_elsewhere(management, at)
    await second.sweep()
    assert await stored(management) == ["req_a2"]
    await management.ask("DELETE", "/api/keys/other")
    await second.sweep()
    assert await stored(management) == []


async def test_a_purge_deletes_what_every_node_brought(
    management: Management, second: SharedBodyKeeper
) -> None:
    at = now_ms()
    put_at(second, BodyName(at - 2 * DAY_MS, "req_a1", "k"))
    put_at(second, BodyName(at - 9, "req_a2", "k"))
    await second.take_in()
    purged = await management.ask(
        "POST", "/api/settings/purge-request-history", {"olderThanDays": 1}
    )
    assert (purged["deletedBodies"], await stored(management)) == (1, ["req_a2"])
    purged = await management.ask("POST", "/api/settings/purge-request-history", {})
    assert (purged["deletedBodies"], await stored(management)) == (1, [])


async def test_a_request_that_was_purged_elsewhere_is_not_shown(management: Management) -> None:
    await settle_with_body(management, "req_a1", now_ms() - 5)
    await management.ask("GET", "/api/usage/logs/req_a1/body")
    await purge_elsewhere(management, now_ms())
    await management.refused("GET", "/api/usage/logs/req_a1/body", expect=404)


async def test_bounds_are_of_all_nodes_together(
    management: Management, second: SharedBodyKeeper, tmp_path: Path
) -> None:
    at = now_ms() // HOUR_MS * HOUR_MS + 5
    third = node(management, tmp_path / "third")
    names = [
        BodyName(at - hour * HOUR_MS + n, f"req_{hour}{n}", "k")
        for hour in (2, 1, 0)
        for n in range(4)
    ]
    for place, name in enumerate(names):
        put_at((second, third)[place % 2], name, b"x" * 1000)
    await second.take_in()
    await third.take_in()
    ids = [name.request_id for name in names]
    assert await stored(management) == ids
    sweep = BodySweep(blobs_of(management.services))
    assert await sweep.run(await bounds_of(management), at) == 0
    one = sweep.total_bytes // len(names)
    assert one > 1000
    for left in (12, 11, 7, 2, 0):
        deleted = await sweep.run(await bounds_of(management, limit_bytes=left * one), at)
        assert await stored(management) == ids[len(ids) - left :], "the oldest go"
        assert sweep.total_bytes == left * one
    assert deleted == 2


async def test_the_age_bound_is_exact(management: Management, second: SharedBodyKeeper) -> None:
    at = now_ms()
    for place in range(9):
        put_at(second, BodyName(at - place * HOUR_MS // 3, f"req_{place}", "k"))
    await second.take_in()
    sweep = BodySweep(blobs_of(management.services))
    bounds = await bounds_of(management, days=1)
    assert await sweep.run(bounds, at + DAY_MS - 4 * HOUR_MS // 3) == 4
    assert await stored(management) == ["req_4", "req_3", "req_2", "req_1", "req_0"]
    assert await sweep.run(bounds, at + DAY_MS + 1) == 5
    assert sweep.total_bytes == 0


async def test_what_others_deleted_is_not_counted_against_the_bound(
    management: Management, second: SharedBodyKeeper
) -> None:
    """A purge elsewhere leaves a wrong sum behind, by which bodies would go that may stay."""
    at = now_ms()
    for place in range(8):
        put_at(second, BodyName(at - 3 * HOUR_MS + place, f"req_{place}", "k"), b"x" * 1000)
    await second.take_in()
    sweep = BodySweep(blobs_of(management.services))
    await sweep.run(await bounds_of(management), at)
    limit_bytes, purged_before_ms = sweep.total_bytes, at - 3 * HOUR_MS + 4
    await second.delete_before(purged_before_ms)
    await purge_elsewhere(management, purged_before_ms)
    for place in range(4):
        put_at(second, BodyName(at - place, f"req_n{place}", "k"), b"x" * 1000)
    await second.take_in()
    assert await sweep.run(await bounds_of(management, limit_bytes=limit_bytes), at) == 0
    assert len(await stored(management)) == 8


async def test_what_is_no_body_is_left_alone(
    management: Management, second: SharedBodyKeeper
) -> None:
    put_at(second, BodyName(now_ms(), "req_a1", "k"))
    await second.take_in()
    blobs = blobs_of(management.services)
    stranger = second.spool / "stranger"
    for name in (f"{FOLDER}/notes", f"{FOLDER}/5/{BodyName(7 * HOUR_MS, 'req_1', 'k').file}"):
        stranger.write_bytes(b"12")
        await blobs.write(name, chunks_of(stranger), 2)
    sweep = BodySweep(blobs)
    assert await sweep.run(await bounds_of(management), now_ms()) == 0
    assert (
        len({each.name.path async for page in stored_bodies(blobs, FOLDER) for each in page}) == 1
    )
    assert await sweep.run(await bounds_of(management, limit_bytes=0), now_ms()) == 1
    assert len(await blobs.list(FOLDER)) == 2


async def test_bodies_from_before_the_store_are_brought(
    management: Management, second: SharedBodyKeeper
) -> None:
    names = [BodyName(now_ms() - hour * HOUR_MS, f"req_{hour}", "k") for hour in range(3)]
    for name in names:
        target = second._services.data_dir / name.path
        target.parent.mkdir(parents=True)
        put_at(second, name).rename(target)
        assert await second.has([name]) == [True]
    await second.take_in()
    assert await stored(management) == ["req_2", "req_1", "req_0"]
    assert await second.has(names) == [True] * 3


# --- a store that is away, or slow


@pytest.fixture
async def over_bucket(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Management]:
    """A node over a bucket whose faults are not waited for."""
    monkeypatch.setattr(bucket_module, "RETRY_FIRST_S", 0.0)
    monkeypatch.setattr(module, "LOOKUP_WITHIN_S", 2.0)
    monkeypatch.setattr(module, "RETRY_AFTER_S", 0.05)
    async with run_management(
        tmp_path / "data",
        files_url=server.url,
        files_access_key_id=ACCESS_KEY_ID,
        files_secret_access_key=SECRET_ACCESS_KEY,
    ) as running:
        await hold_keys(running.services, "k")
        yield running


async def test_a_store_that_is_away_costs_no_body_and_is_said_once(
    over_bucket: Management, server: S3Server, tmp_path: Path
) -> None:
    other = node(over_bucket, tmp_path / "other")
    kept = await settle(over_bucket, "req_a0", now_ms())
    put_at(other, kept)
    await other.take_in()
    server.failures = 10**6
    names = [BodyName(now_ms(), f"req_a{count}", "k") for count in range(1, 6)]
    waiting = [put_at(other, name) for name in names]
    with structlog.testing.capture_logs() as logged:
        task = asyncio.create_task(other.run())
        asked = len(server.requests)
        async with asyncio.timeout(20):
            while len(server.requests) < asked + 60:
                await asyncio.sleep(0.01)
        assert all(path.exists() for path in waiting)
        assert await other.find(names[0]) is not None, "what is here is read"
        assert await other.has([kept, names[0]]) == [False, True]
        message, _ = await over_bucket.refused("GET", "/api/usage/logs/req_a0/body", expect=503)
        assert "does not answer" in message
        rows = (await over_bucket.ask("GET", "/api/usage/request-logs"))["logs"]
        assert [row["requestId"] for row in rows] == ["req_a0"], "the log is shown all the same"
        server.failures = 0
        async with asyncio.timeout(20):
            while len(server.below(FOLDER)) < 6:
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})
    events = [entry["event"] for entry in logged if "brought" in str(entry)]
    assert events == [
        "kept bodies wait on this machine, as they cannot be brought",
        "the store of files has kept bodies again",
    ]
    await over_bucket.ask("GET", "/api/usage/logs/req_a0/body")


async def test_a_store_that_hangs_holds_nobody_up(
    over_bucket: Management, server: S3Server
) -> None:
    await settle(over_bucket, "req_a0", now_ms())
    server.hold = threading.Event()
    async with asyncio.timeout(20):
        message, _ = await over_bucket.refused("GET", "/api/usage/logs/req_a0/body", expect=503)
        rows = (await over_bucket.ask("GET", "/api/usage/request-logs"))["logs"]
    assert "does not answer" in message
    assert [row["hasBodies"] for row in rows] == [False]
    server.hold.set()
    await over_bucket.refused("GET", "/api/usage/logs/req_a0/body", expect=404)


async def test_a_call_that_hangs_keeps_its_place_until_it_ends() -> None:
    calls, gate, begun = BoundedCalls(1, 0.05), asyncio.Event(), 0

    async def call() -> int:
        nonlocal begun
        begun += 1
        await gate.wait()
        return begun

    for _ in range(3):
        with pytest.raises(StorageUnavailable, match="does not answer"):
            await calls.run(call)
    assert begun == 1
    gate.set()
    assert await calls.run(call) == 2

    async def fail() -> None:
        raise OSError(5, "Input/output error")

    with pytest.raises(StorageUnavailable, match="Input/output error"):
        await calls.run(fail)
    assert await calls.run(call) == 3


async def test_a_sweep_lists_what_is_written_to_and_seldom_all(
    over_bucket: Management, server: S3Server, tmp_path: Path
) -> None:
    other = node(over_bucket, tmp_path / "other")
    at = now_ms() // HOUR_MS * HOUR_MS + HOUR_MS // 2
    for hour in range(1, 13):
        put_at(other, BodyName(now_ms() - hour * HOUR_MS, f"req_{hour}", "k"))
    await other.take_in()

    def lists() -> int:
        return sum("list-type" in target for _, target in server.requests)

    # The node's own first sweep is over.
    async with asyncio.timeout(20):
        while not lists():
            await asyncio.sleep(0.01)
    sweep, bounds = BodySweep(blobs_of(over_bucket.services)), await bounds_of(over_bucket)
    before = lists()
    assert await sweep.run(bounds, at) == 0
    assert lists() - before == 4, "three a page"
    before = lists()
    for _ in range(5):
        assert await sweep.run(bounds, at) == 0
    assert lists() - before == 5, "the present hour alone"
    before = lists()
    assert await sweep.run(replace(bounds, limit_bytes=10 * MIB), at - HOUR_MS // 2 + 1) == 0
    assert lists() - before == 2, "and for a while the one before it"
