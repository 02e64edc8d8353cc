from __future__ import annotations

import asyncio

import pytest

from fairlead import _core
from fairlead.errors import StorageUnavailable
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.records.webhook_endpoints import insert_endpoint, new_endpoint
from fairlead.store.operator_settings import OperatorSettings, write_operator_settings
from fairlead.store.outbox import Event, emit
from fairlead.webhooks import retention
from fairlead.webhooks.retention import DAY_MS, EXPIRED, GRACE_MS, sweep
from fairlead.webhooks.worker import Worker

pytestmark = pytest.mark.anyio


async def rows(state, table: str) -> int:
    found = await state.read(lambda con: con.execute(f"SELECT count(*) FROM {table}").fetchone())
    return found[0]


async def test_finished_deliveries_go_after_the_days_that_are_set(engine, listener) -> None:
    state = engine.state
    endpoint = await engine.add(f"{listener.url}/ok")
    await engine.raise_events(3)
    while any(one.state != "delivered" for one in await engine.deliveries(endpoint)):
        await asyncio.sleep(0.01)
    await state.record(
        lambda con: write_operator_settings(con, OperatorSettings(webhookHistoryDays=2))
    )
    await state.record(lambda con: sweep(con, engine.at_ms + 2 * DAY_MS))
    assert await rows(state, "webhook_deliveries") == 3
    await state.record(lambda con: sweep(con, engine.at_ms + 2 * DAY_MS + 1))
    for table in ("webhook_deliveries", "webhook_attempts", "webhook_messages"):
        assert await rows(state, table) == 0, table
    assert await rows(state, "webhook_endpoints") == 1


async def test_only_so_many_are_kept(engine, listener, monkeypatch) -> None:
    monkeypatch.setattr(retention, "FINISHED_MAX", 2)
    endpoint = await engine.add(f"{listener.url}/ok")
    for _ in range(4):
        await engine.pass_time(1)
        await engine.raise_events()
        await engine.until(endpoint, state="delivered")
    newest = [one.id for one in await engine.deliveries(endpoint)][:2]
    await engine.state.record(lambda con: sweep(con, engine.at_ms))
    assert [one.id for one in await engine.deliveries(endpoint)] == newest
    assert await rows(engine.state, "webhook_messages") == 2


async def test_what_waits_is_kept_until_its_day_is_over(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/ok")
    # It asked for so much time that there is never a try.
    await engine.state.record(
        lambda con: con.execute(
            "UPDATE webhook_endpoints SET not_before_ms = ?", [engine.at_ms + 9 * DAY_MS]
        ).fetchall()
    )
    await engine.raise_events()
    end_ms = engine.at_ms + DAY_MS + GRACE_MS
    await engine.state.record(lambda con: sweep(con, end_ms))
    assert [one.state for one in await engine.deliveries(endpoint)] == ["pending"]
    await engine.state.record(lambda con: sweep(con, end_ms + 1))
    (delivery,) = await engine.deliveries(endpoint)
    assert (delivery.state, delivery.error, delivery.attempts) == ("failed", EXPIRED, 0)
    assert listener.received() == []


async def test_a_worker_that_cannot_write_ends_and_what_it_sent_is_sent_again(
    state, listener, monkeypatch
) -> None:
    endpoint = new_endpoint("gateway", f"{listener.url}/ok", ["*"], now_ms())
    secret = _core.new_webhook_secret()
    await state.record(lambda con: insert_endpoint(con, state.sealer, endpoint, secret))
    await state.record(lambda con: emit(con, Event("key.deleted", {"id": "1", "name": "x"})))
    egress = Egress("127.0.0.0/8")

    async def broken(work: object) -> None:
        raise StorageUnavailable("The database does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(state.database, "write", broken)
        async with asyncio.timeout(10):
            with pytest.raises(StorageUnavailable):
                await Worker(state, egress).run()
    begun = asyncio.Event()
    write = state.database.write
    with monkeypatch.context() as patched:

        async def held(work: object) -> None:
            patched.setattr(state.database, "write", write)
            begun.set()
            await asyncio.Event().wait()

        patched.setattr(state.database, "write", held)
        again = asyncio.create_task(Worker(state, egress).run())
        async with asyncio.timeout(10):
            await begun.wait()
        again.cancel()
        await asyncio.wait([again], timeout=10)
    assert again.cancelled()
    first, second = listener.received()
    assert (first.message_id, first.body) == (second.message_id, second.body)
    # A stop in good order keeps what was done.
    assert await rows(state, "webhook_attempts") == 1
    egress.close()
