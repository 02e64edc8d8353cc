"""The link: a change answers when every live worker has it, or a second after it was offered."""

from __future__ import annotations

import asyncio
import json
import time

import httpx
import pytest

from fairlead.control import link as link_module
from fairlead.control.app import build
from tests.support.management import LINK_TOKEN

pytestmark = pytest.mark.anyio


async def poll(control, worker: str, applied: int, **more) -> dict:
    body = {"worker": worker, "pid": 1, "applied_version": applied, "done": [], "stats": {}, **more}
    answer = await control.client.post("/internal/link", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def follow(control, worker: str, seen: list[int], delay_s: float = 0.0) -> None:
    """A worker that applies what it gets."""
    applied = 0
    while True:
        news = await poll(control, worker, applied)
        if "snapshot" in news:
            await asyncio.sleep(delay_s)
            applied = news["version"]
            seen.append(applied)


async def until(true, deadline_s: float = 10.0) -> None:
    async with asyncio.timeout(deadline_s):
        while not true():
            await asyncio.sleep(0.005)


async def change(control) -> float:
    """Makes a key; returns the seconds it took."""
    started = time.monotonic()
    answer = await control.client.post("/api/keys", json={"name": "laptop"})
    assert answer.status_code == 201
    return time.monotonic() - started


async def test_a_new_worker_gets_the_snapshot_at_once(control) -> None:
    news = await poll(control, "a1", 0)
    assert set(news) == {"version", "control", "snapshot", "commands"}
    assert news["version"] == news["snapshot"]["version"]
    assert {"compiled_at_ms", "settings", "local_token_hash", "keys", "sessions"} <= set(
        news["snapshot"]
    )
    assert {"connections", "models", "prices"} <= set(news["snapshot"])
    assert news["snapshot"]["settings"] == {
        "require_login": True,
        "cors_origins": [],
        "unpriced_models": "allow",
        "bare_models": "resolve",
    }
    assert control.snapshot() == news["snapshot"]
    assert (control.data_dir / "snapshot.json").stat().st_mode & 0o777 == 0o600


async def test_an_answered_change_is_applied_by_every_live_worker(control) -> None:
    seen: dict[str, list[int]] = {"a1": [], "b2": []}
    workers = [asyncio.create_task(follow(control, w, s, 0.05)) for w, s in seen.items()]
    await until(lambda: all(seen.values()))
    for _ in range(3):
        assert await change(control) < 1.0
        version = control.app.state.services.snapshot_version()
        assert all(applied[-1] == version for applied in seen.values())
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


async def test_a_worker_that_does_not_apply_costs_a_second_and_no_more(control) -> None:
    version = (await poll(control, "a1", 0))["version"]
    assert 0.9 < await change(control) < 2.0
    assert (await poll(control, "a1", version))["version"] > version


async def test_changes_at_the_same_time_share_snapshots(control) -> None:
    await poll(control, "a1", 0)
    before = control.app.state.services.snapshot_version()
    await asyncio.gather(*(change(control) for _ in range(40)))
    assert control.app.state.services.snapshot_version() - before < 20
    assert len(control.snapshot()["keys"]) == 40


async def test_a_poll_is_held_then_answered_without_a_snapshot(control, monkeypatch) -> None:
    version = (await poll(control, "a1", 0))["version"]
    monkeypatch.setattr(link_module, "HOLD_S", 0.2)
    started = time.monotonic()
    held = await poll(control, "a1", version)
    assert held == {"version": version, "control": held["control"], "commands": []}
    assert time.monotonic() - started >= 0.2


async def test_a_worker_that_goes_away_is_waited_for_no_more(control) -> None:
    """Its poll ends by its going away: the change after it is answered at once."""
    version = (await poll(control, "a1", 0))["version"]
    gone = asyncio.Event()
    body = json.dumps({"worker": "a1", "pid": 1, "applied_version": version}).encode()
    inbox = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict:
        if inbox:
            return inbox.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict) -> None:
        pass

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/internal/link",
        "raw_path": b"/internal/link",
        "query_string": b"",
        "headers": [(b"x-fairlead-link", LINK_TOKEN.encode())],
        "http_version": "1.1",
        "scheme": "http",
        "server": None,
        "client": None,
        "root_path": "",
    }
    held = asyncio.create_task(control.app(scope, receive, send))
    workers = control.app.state.services.workers
    await until(lambda: workers()[0].live)
    gone.set()
    await held
    assert not workers()[0].live
    assert await change(control) < 0.9


async def test_what_a_worker_says_of_itself_is_kept(control) -> None:
    stats = {"in_flight": 3, "connections": [{"id": "x", "state": "cooling", "cooling_ms": 500}]}
    await poll(control, "a1", 0, stats=stats)
    [report] = control.app.state.services.workers()
    assert (report.worker_id, report.pid, report.live, report.stats) == ("a1", 1, True, stats)


async def test_a_poll_that_cannot_be_read_is_refused(control) -> None:
    for body in (b"", b"{}", b"[]", b'{"worker": "../x", "pid": 1, "applied_version": 0}'):
        answer = await control.client.post("/internal/link", content=body)
        assert answer.status_code == 400
    assert control.app.state.services.workers() == []


async def test_versions_go_on_where_a_worker_is(control) -> None:
    """The state database was put back to a copy: the worker must still get what is newer."""
    news = await poll(control, "a1", 1000)
    assert news["version"] == 1001
    assert news["snapshot"]["version"] == 1001


async def test_versions_never_go_back_over_restarts(config) -> None:
    versions = []
    for _ in range(3):
        app = build(config)
        async with app.router.lifespan_context(app):
            services = app.state.services
            await until(lambda: services.snapshot_version() > 0)  # noqa: B023
            versions.append(services.snapshot_version())
    assert versions == sorted(set(versions))
    path = config.data_dir / "snapshot.json"
    path.write_text(json.dumps({"version": 500}))
    app = build(config)
    async with app.router.lifespan_context(app):
        await until(lambda: app.state.services.snapshot_version() > 500)


async def test_a_disk_that_does_not_take_the_snapshot_still_lets_a_revocation_through(
    control,
) -> None:
    client: httpx.AsyncClient = control.client
    key_id = (await client.post("/api/keys", json={"name": "x"})).json()["id"]
    version = (await poll(control, "a1", 0))["version"]
    blocked = control.data_dir / "snapshot.json.new"
    blocked.mkdir()
    answer = await client.delete(f"/api/keys/{key_id}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_unavailable")
    assert (await poll(control, "a1", version))["snapshot"]["keys"] == []
    blocked.rmdir()
    await until(lambda: control.snapshot()["keys"] == [])
