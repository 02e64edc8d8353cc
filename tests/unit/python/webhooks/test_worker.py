"""What is delivered, when again, and when no more."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import standardwebhooks

from fairlead.records.webhook_endpoints import (
    SecretChange,
    delete_endpoint,
    insert_endpoint,
    new_endpoint,
    rotate_secret,
    update_endpoint,
)
from fairlead.store.outbox import BACKLOG_FULL, Event, emit
from fairlead.webhooks.due_deliveries import PER_ENDPOINT_MAX
from fairlead.webhooks.history import requeue
from fairlead.webhooks.schedule import BACKOFF_S
from fairlead.webhooks.settle import DISABLE_AFTER_MS

pytestmark = pytest.mark.anyio

DAY_S = 24 * 3600


async def test_the_official_clients_verify_what_was_sent(engine, listener) -> None:
    import svix

    endpoint = await engine.add(f"{listener.url}/ok", "key.created")
    await engine.raise_events()
    delivery = await engine.until(endpoint, state="delivered", attempts=1, status=200, error=None)
    (got,) = listener.received()
    assert got.message_id == delivery.message_id
    assert got.event == {
        "type": "key.created",
        "timestamp": got.event["timestamp"],
        "data": {"id": "0", "name": "laptop"},
    }
    for verifier in (standardwebhooks.Webhook(engine.secret), svix.Webhook(engine.secret)):
        verifier.verify(got.body, got.headers)
        with pytest.raises(Exception, match="signature"):
            verifier.verify(got.body + b" ", got.headers)


async def test_while_a_secret_is_rotated_both_verify(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/ok")
    old, new = engine.secret, "whsec_" + "bmV3" * 8
    sealer = engine.state.sealer

    async def rotate(keep_ms: int) -> None:
        engine.at_ms += 1
        await engine.state.record(
            lambda con: rotate_secret(
                con, sealer, endpoint.id, SecretChange(new, keep_ms, engine.at_ms)
            )
        )

    async def send() -> object:
        before = len(listener.received())
        await engine.raise_events()
        await engine.until(endpoint, state="delivered")
        return listener.received()[before]

    await rotate(60_000)
    got = await send()
    for secret in (old, new):
        standardwebhooks.Webhook(secret).verify(got.body, got.headers)
    engine.at_ms += 60_000
    got = await send()
    standardwebhooks.Webhook(new).verify(got.body, got.headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(old).verify(got.body, got.headers)


async def test_failures_are_tried_again_at_growing_intervals_for_a_day(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/status/500")
    await engine.raise_events()
    delivery = await engine.until(endpoint, state="pending", attempts=1, error="status")
    expires_ms = delivery.created_at_ms + DAY_S * 1000
    waits = []
    while delivery.state == "pending":
        assert delivery.finished_at_ms is None
        waits.append((delivery.next_attempt_at_ms - engine.at_ms) / 1000)
        attempts = delivery.attempts
        # A moment before, nothing happens.
        await engine.pass_time(waits[-1] - 0.001)
        assert (await engine.deliveries(endpoint))[0].attempts == attempts
        await engine.pass_time(0.001)
        delivery = await engine.until(endpoint, attempts=attempts + 1)
    assert waits[: len(BACKOFF_S)] == list(BACKOFF_S)
    assert delivery.state == "failed"
    assert engine.at_ms == expires_ms
    assert len({one.message_id for one in listener.received()}) == 1
    assert len({one.body for one in listener.received()}) == 1
    stamps = [int(one.headers["webhook-timestamp"]) for one in listener.received()]
    assert stamps == sorted(set(stamps))
    history = await engine.attempts(delivery.id)
    assert [one.number for one in history] == list(range(1, len(waits) + 2))
    assert {one.status for one in history} == {500}


async def test_a_listener_that_heals_gets_everything(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/flaky/2")
    await engine.raise_events(3)
    for wait_s in (5, 30):
        await engine.until(endpoint, error="status")
        while (await engine.deliveries(endpoint))[0].next_attempt_at_ms <= engine.at_ms:
            await asyncio.sleep(0.01)
        await engine.pass_time(wait_s)
    for _ in range(200):
        found = await engine.deliveries(endpoint)
        if all(one.state == "delivered" for one in found):
            break
        await engine.pass_time(1)
        await asyncio.sleep(0.02)
    assert [one.state for one in found] == ["delivered"] * 3
    assert {one.attempts for one in found} == {3}
    assert (await engine.endpoint(endpoint)).failing_since_ms is None


async def test_rows_that_nobody_could_send_stop_no_other_delivery(engine, listener) -> None:
    """A stored secret that signs nothing and an id that no header can have: each is its delivery's own failure."""
    broken = await engine.add(f"{listener.url}/broken")
    named = await engine.add(f"{listener.url}/named", "key.deleted")
    healthy = await engine.add(f"{listener.url}/ok", "key.created")
    sealer = engine.state.sealer

    def spoil(con) -> None:
        (secret_id,) = con.execute(
            "SELECT id FROM webhook_secrets WHERE endpoint_id = ?", [broken.id]
        ).fetchone()
        sealed = sealer.seal(secret_id, b"not a signing secret")
        con.execute("UPDATE webhook_secrets SET sealed = ? WHERE id = ?", [sealed, secret_id])
        emit(con, Event("key.deleted", {"id": "1"}, engine.at_ms))
        (message_id,) = con.execute(
            "SELECT id FROM webhook_messages WHERE body LIKE '%key.deleted%'"
        ).fetchone()
        con.execute("UPDATE webhook_messages SET id = 'a\nb' WHERE id = ?", [message_id])
        con.execute(
            "UPDATE webhook_deliveries SET message_id = 'a\nb' WHERE message_id = ?", [message_id]
        )

    await engine.state.record(spoil)
    await engine.raise_events(3)
    await engine.until(healthy, state="delivered")
    for endpoint in (broken, named):
        await engine.until(endpoint, state="pending", attempts=1, error="connection_broken")
    assert not engine.task.done()
    await engine.pass_time(60)
    await engine.raise_events()
    for _ in range(500):
        if len([one for one in await engine.deliveries(healthy) if one.state == "delivered"]) == 4:
            break
        await asyncio.sleep(0.02)
    assert [one.state for one in await engine.deliveries(healthy)] == ["delivered"] * 4


@pytest.mark.parametrize(
    ("path", "error", "status"),
    [
        ("/status/404", "status", 404),
        ("/status/503", "status", 503),
        ("/status/304", "redirect", 304),
        ("/cut", "connection_broken", None),
    ],
)
async def test_all_but_2xx_is_failure(engine, listener, path, error, status) -> None:
    endpoint = await engine.add(listener.url + path)
    await engine.raise_events()
    await engine.until(endpoint, state="pending", attempts=1, error=error, status=status)


async def test_a_large_answer_is_not_taken(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/huge")
    await engine.raise_events()
    delivery = await engine.until(endpoint, state="delivered", status=200)
    assert delivery.latency_ms < 3000


async def test_redirects_are_not_followed(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/redirect?to={listener.url}/ok")
    await engine.raise_events()
    await engine.until(endpoint, state="pending", error="redirect", status=302)
    assert [one.path for one in listener.received()] == ["/redirect"]


async def test_nobody_there_and_no_tls_there(engine, listener) -> None:
    nobody = await engine.add("http://127.0.0.1:1/")
    no_tls = await engine.add(listener.url.replace("http:", "https:") + "/ok")
    await engine.raise_events()
    await engine.until(nobody, state="pending", error="connection_failed", status=None)
    await engine.until(no_tls, state="pending", error="tls_failed", status=None)


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_kept_by_the_whole_endpoint(engine, listener, status) -> None:
    endpoint = await engine.add(f"{listener.url}/status/{status}?retry-after=100")
    await engine.raise_events()
    delivery = await engine.until(endpoint, state="pending", attempts=1)
    assert delivery.next_attempt_at_ms == engine.at_ms + 100_000
    await engine.raise_events()
    await engine.pass_time(99)
    await asyncio.sleep(0.1)
    assert len(listener.received()) == 1
    await engine.pass_time(1)
    await engine.until(endpoint, attempts=1)


async def test_410_disables_and_ends_what_waits(engine, listener) -> None:
    watcher = await engine.add(f"{listener.url}/ok", "webhook.disabled")
    endpoint = await engine.add(f"{listener.url}/status/410", "key.created")
    await engine.raise_events()
    await engine.until(endpoint, state="failed", error="endpoint_disabled")
    after = await engine.endpoint(endpoint)
    assert after.state == "disabled_due_to_failed_deliveries"
    assert "410" in after.reason
    await engine.until(watcher, state="delivered", event="webhook.disabled")
    (told,) = listener.received("/ok")
    assert told.event["data"] == {"id": endpoint.id, "host": "127.0.0.1", "reason": after.reason}
    assert await engine.raise_events() == 0


async def test_long_failure_disables_and_a_success_starts_the_count_anew(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/switch", "key.created")
    listener.answer("500")
    await engine.raise_events()
    await engine.until(endpoint, attempts=1)
    since_ms = engine.at_ms
    await engine.pass_time(DISABLE_AFTER_MS / 1000 - 1)
    await engine.until(endpoint, attempts=2)
    assert (await engine.endpoint(endpoint)).failing_since_ms == since_ms
    listener.answer("200")
    await engine.pass_time(1)
    await engine.raise_events()
    await engine.until(endpoint, state="delivered")
    assert (await engine.endpoint(endpoint)).failing_since_ms is None
    listener.answer("500")
    await engine.pass_time(1)
    await engine.raise_events()
    await engine.until(endpoint, attempts=1, state="pending")
    await engine.pass_time(DISABLE_AFTER_MS / 1000)
    await engine.until(endpoint, state="failed", attempts=2)
    after = await engine.endpoint(endpoint)
    assert after.state == "disabled_due_to_failed_deliveries"
    assert "No delivery has succeeded since" in after.reason


async def test_a_dead_listener_delays_nobody(engine, listener) -> None:
    listener.answer("stall")
    dead = [await engine.add(f"{listener.url}/switch") for _ in range(3)]
    alive = await engine.add(f"{listener.url}/ok")
    await engine.raise_events(50)
    await engine.until(alive, state="delivered")
    while any(one.state == "pending" for one in await engine.deliveries(alive)):
        await asyncio.sleep(0.01)
    for endpoint in dead:
        assert {one.attempts for one in await engine.deliveries(endpoint)} == {0}
    ours = listener.received("/ok")
    assert len({one.message_id for one in ours}) == 50
    # They came while the dead ones had nothing said yet.
    assert max(one.at_s for one in ours) - min(one.at_s for one in ours) < 5


async def test_what_was_changed_meanwhile_counts_for_the_next_try(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/status/500")
    await engine.raise_events()
    await engine.until(endpoint, attempts=1)
    moved = await engine.endpoint(endpoint)
    await engine.state.record(
        lambda con: con.execute(
            "UPDATE webhook_endpoints SET url = ? WHERE id = ?", [f"{listener.url}/ok", moved.id]
        ).fetchall()
    )
    await engine.pass_time(5)
    await engine.until(endpoint, state="delivered", attempts=2)


async def test_an_endpoint_that_is_deleted_gets_nothing_more(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/status/500")
    await engine.raise_events()
    await engine.until(endpoint, attempts=1)
    await engine.state.record(lambda con: delete_endpoint(con, endpoint.id))
    await engine.pass_time(DAY_S)
    await asyncio.sleep(0.1)
    assert len(listener.received()) == 1
    for table in ("webhook_deliveries", "webhook_attempts", "webhook_secrets"):
        rows = await engine.state.read(
            lambda con, t=table: con.execute(f"SELECT * FROM {t}").fetchall()
        )
        assert rows == []


async def test_what_was_taken_up_is_let_go_when_its_endpoint_is_deleted(engine, listener) -> None:
    """Some are in flight and many behind them in memory: once the deletion returned, none of those goes out."""
    heard, may_answer = [], asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                heard.append(await reader.readexactly(length))
                await may_answer.wait()
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    endpoint = await engine.add(f"http://127.0.0.1:{port}/")
    other = await engine.add(f"{listener.url}/ok")
    await engine.raise_events(30)
    await engine.until(other, state="delivered")
    while len(heard) < PER_ENDPOINT_MAX:
        await asyncio.sleep(0.01)
    await engine.state.record(lambda con: delete_endpoint(con, endpoint.id))
    may_answer.set()
    await engine.raise_events(1)
    while any(one.state == "pending" for one in await engine.deliveries(other)):
        await asyncio.sleep(0.01)
    assert len(heard) == PER_ENDPOINT_MAX
    server.close()


async def test_switched_off_it_waits_and_switched_on_it_goes(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/status/500")
    await engine.raise_events()
    await engine.until(endpoint, attempts=1)
    off = {"state": "disabled", "url": f"{listener.url}/ok"}
    from dataclasses import replace

    await engine.state.record(lambda con: update_endpoint(con, replace(endpoint, **off)))
    await engine.pass_time(60)
    await asyncio.sleep(0.1)
    assert len(listener.received()) == 1
    await engine.state.record(lambda con: update_endpoint(con, replace(endpoint, url=off["url"])))
    await engine.until(endpoint, state="delivered")


async def test_a_redelivery_is_the_same_message(engine, listener) -> None:
    endpoint = await engine.add(f"{listener.url}/ok")
    await engine.raise_events()
    delivery = await engine.until(endpoint, state="delivered")
    await engine.state.record(lambda con: requeue(con, endpoint.id, [delivery.id], engine.at_ms))
    await engine.until(endpoint, state="delivered", attempts=2)
    first, second = listener.received()
    assert (first.message_id, first.body) == (second.message_id, second.body)


async def test_an_event_is_delivered_iff_its_transaction_is_committed(engine, listener) -> None:
    await engine.add(f"{listener.url}/ok")

    def undone(con) -> None:
        emit(con, Event("key.created", {"id": "never", "name": "never"}))
        raise LookupError

    with pytest.raises(LookupError):
        await engine.state.record(undone)
    rows = await engine.state.read(
        lambda con: con.execute("SELECT * FROM webhook_messages").fetchall()
    )
    assert rows == []


async def test_surfaces_and_owners_are_told_of_their_own_events(engine, listener) -> None:
    mine = new_endpoint("crawl", f"{listener.url}/ok", ["*"], engine.at_ms, owner="crawl-1")
    other = new_endpoint("crawl", f"{listener.url}/ok", ["*"], engine.at_ms, owner="crawl-2")
    gateway = await engine.add(f"{listener.url}/ok")

    def work(con) -> tuple[int, int]:
        for one in (mine, other):
            insert_endpoint(con, engine.state.sealer, one, engine.secret)
        event = Event("crawl.page", {"id": "crawl-1"}, engine.at_ms, members={"version": "v1"})
        return (
            emit(con, event, surface="crawl", owner="crawl-1"),
            emit(con, event, surface="crawl", owner="crawl-3"),
        )

    assert await engine.state.record(work) == (1, 0)
    await engine.until(mine, state="delivered")
    assert await engine.deliveries(other) == []
    assert await engine.deliveries(gateway) == []
    (got,) = listener.received()
    assert list(got.event) == ["type", "timestamp", "version", "data"]
    with pytest.raises(ValueError, match="no event"):
        await engine.state.record(lambda con: emit(con, Event("crawl.page", {})))


async def test_the_first_of_several_events_with_one_id_wins(engine, listener) -> None:
    await engine.add(f"{listener.url}/ok")
    event = Event("key.created", {"id": "a", "name": "a"}, id="msg_again")
    assert await engine.state.record(lambda con: emit(con, event, event)) == 1
    assert await engine.state.record(lambda con: emit(con, event)) == 0
    for wrong in ("a.b", "", "a b", "x" * 65):
        with pytest.raises(ValueError, match="id"):
            await engine.state.record(lambda con, w=wrong: emit(con, Event("test.ping", {}, id=w)))


async def test_the_queue_of_an_endpoint_is_bounded(engine, listener, monkeypatch) -> None:
    monkeypatch.setattr("fairlead.store.outbox.PENDING_MAX", 5)
    listener.answer("stall")
    endpoint = await engine.add(f"{listener.url}/switch")
    await engine.raise_events(7)
    found = await engine.deliveries(endpoint)
    assert sorted(one.state for one in found) == ["failed"] * 2 + ["pending"] * 5
    assert {one.error for one in found if one.state == "failed"} == {BACKLOG_FULL}


async def test_a_secret_that_does_not_open_holds_up_nobody_else(engine, listener) -> None:
    broken = await engine.add(f"{listener.url}/ok")
    await engine.state.record(
        lambda con: con.execute("UPDATE webhook_secrets SET sealed = ?", [b"x"]).fetchall()
    )
    fine = await engine.add(f"{listener.url}/ok")
    await engine.raise_events()
    await engine.until(fine, state="delivered")
    await engine.until(broken, state="pending", error="secret_unreadable")
    assert len(listener.received()) == 1
