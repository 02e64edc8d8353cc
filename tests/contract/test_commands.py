"""What control asks of relay workers: every live one is asked, once, and its report is what counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlead.control import commands as commands_module
from fairlead.errors import StorageUnavailable
from fairlead.gateway.cache import vectors
from fairlead.process.extra import install_command

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]


async def poll(control, worker: str, done: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    version = control.app.state.services.snapshot_version()
    body = {"worker": worker, "pid": 1, "applied_version": version, "done": done or []}
    answer = await control.client.post("/internal/link", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def first(control) -> dict[str, Any]:
    """What a worker is told that has nothing yet."""
    body = {"worker": "f1", "pid": 1, "applied_version": 0}
    told: dict[str, Any] = (await control.client.post("/internal/link", json=body)).json()
    return told


async def work(control, worker: str, result: Any, seen: list[dict[str, Any]]) -> None:
    """A worker that answers whatever it is asked."""
    done: list[dict[str, Any]] = []
    while True:
        told = await poll(control, worker, done)
        seen += told["commands"]
        done = [{"id": one["id"], **result} for one in told["commands"]]


async def test_every_live_worker_is_asked_once_and_told_as_one(control) -> None:
    seen: dict[str, list[dict[str, Any]]] = {"a1": [], "b2": []}
    workers = [
        asyncio.create_task(
            work(
                control, name, {"result": {"removed": len(name) + at, "shared": 3 * at}}, seen[name]
            )
        )
        for at, name in enumerate(seen)
    ]
    reports = control.app.state.services.workers
    async with asyncio.timeout(10):
        while sum(one.live for one in reports()) < 2:
            await asyncio.sleep(0.005)
    answer = await control.client.delete("/api/cache/entries", params={"model": "a/b"})
    assert (answer.status_code, answer.json()) == (200, {"removed": 5, "shared": 3})
    for one in seen.values():
        assert [each["kind"] for each in one] == ["cache.delete"]
        assert one[0]["args"] == {"filter": {"model": "a/b"}}
    await _end(workers)


async def test_a_worker_that_reports_a_fault_is_a_fault(control) -> None:
    worker = asyncio.create_task(work(control, "a1", {"error": "the disk is full"}, []))
    async with asyncio.timeout(10):
        while not any(one.live for one in control.app.state.services.workers()):
            await asyncio.sleep(0.005)
    answer = await control.client.get("/api/cache/stats")
    assert answer.status_code == 503
    assert "the disk is full" in answer.json()["error"]["message"]
    await _end([worker])


async def test_without_an_answer_there_is_none(control, monkeypatch) -> None:
    answer = await control.client.get("/api/cache")
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "No relay worker is connected."
    monkeypatch.setattr(commands_module, "DEADLINE_S", 0.2)
    await poll(control, "a1")
    with pytest.raises(StorageUnavailable, match="in time"):
        await control.app.state.services.command("cache.stats", {})
    assert (await poll(control, "a1"))["commands"] == [], "what nobody waits for is not done later"


async def test_settings_of_the_cache_are_in_the_snapshot(control) -> None:
    told = await first(control)
    assert told["snapshot"]["cache"] == {
        "is_enabled": True,
        "ttl_ms": 1_800_000,
        "memory_bytes": 64 * 2**20,
        "disk_bytes": 256 * 2**20,
        "shared_bytes": 64 * 2**20,
        "wants_vectors": False,
        "threshold": 0.8,
    }
    change = {
        "semanticCacheTtlMs": 5_000,
        "semanticCacheDiskMb": 0,
        "vectorCacheThreshold": 0.9,
    }
    answer = await control.client.patch("/api/settings", json=change)
    assert answer.status_code == 200, answer.text
    cache = control.snapshot()["cache"]
    assert (cache["ttl_ms"], cache["disk_bytes"], cache["threshold"]) == (5_000, 0, 0.9)


async def test_the_vector_tier_is_not_turned_on_without_vectors(control, monkeypatch) -> None:
    monkeypatch.setattr(vectors, "vector_files", lambda: None)
    answer = await control.client.patch("/api/settings", json={"vectorCacheEnabled": True})
    assert answer.status_code == 409
    assert answer.json()["error"]["param"] == "vectorCacheEnabled"
    assert install_command("vectors") in answer.json()["error"]["message"]
    assert (await first(control))["snapshot"]["cache"]["wants_vectors"] is False


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
