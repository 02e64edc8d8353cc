"""Jobs and their own listeners: told in the transaction, once, with a token, and forgotten afterwards."""

from __future__ import annotations

import joserfc.jwt
import pytest
from joserfc.jwk import KeySet

from fairlead.records.service_jobs import (
    JobEvent,
    Subscribers,
    insert_job,
    queue_job_event,
    sweep_jobs,
)
from fairlead.records.signing_keys import (
    DAY_MS,
    SIGNS_FOR_MS,
    ensure_signing_key,
    find_signing_key,
    public_keys,
)
from fairlead.records.webhook_endpoints import count_endpoints, list_endpoints

pytestmark = pytest.mark.anyio


async def begin(engine, job_id: str, *uris: str) -> None:
    await ensure_signing_key(engine.state)
    await engine.state.record(
        lambda con: insert_job(con, "key-1", job_id, Subscribers(uris, {"a": 1}), engine.at_ms)
    )


async def tell(engine, job_id: str, name: str = "batch.succeeded") -> int:
    return await engine.state.record(
        lambda con: queue_job_event(con, "key-1", JobEvent(job_id, name, {}, engine.at_ms))
    )


async def own_listener(engine, job_id: str):
    found = await engine.state.read(lambda con: list_endpoints(con, "job", 10, 0, job_id))
    return found[0] if found else None


async def test_a_jobs_listeners_get_a_token_and_the_owners_get_nothing(engine, listener) -> None:
    static = await engine.add(f"{listener.url}/status/200", owner="key-1")
    await begin(engine, "job-1", f"{listener.url}/ok")
    assert await tell(engine, "job-1") == 1
    endpoint = await own_listener(engine, "job-1")
    await engine.until(endpoint, state="delivered")
    (told,) = listener.received("/ok")
    keys = KeySet.import_key_set(
        {"keys": await engine.state.read(lambda con: public_keys(con, engine.at_ms))}
    )
    token = joserfc.jwt.decode(told.headers["webhook-signature"], keys, algorithms=["RS256"])
    assert token.claims["aud"] == f"{listener.url}/ok"
    assert token.claims["jti"] == told.message_id == "msg_job-1_batch_succeeded"
    assert told.event["user_metadata"] == {"a": 1}
    assert await engine.deliveries(static) == []


async def test_of_an_end_that_is_told_twice_the_first_counts(engine, listener) -> None:
    await begin(engine, "job-1", f"{listener.url}/ok")
    assert [await tell(engine, "job-1"), await tell(engine, "job-1")] == [1, 0]
    # Another thing is another message.
    assert await tell(engine, "job-1", "interaction.requires_action") == 1


async def test_a_job_whose_end_is_undone_is_not_told(engine, listener) -> None:
    await begin(engine, "job-1", f"{listener.url}/ok")

    def broken(con) -> None:
        queue_job_event(con, "key-1", JobEvent("job-1", "batch.succeeded", {}, engine.at_ms))
        raise LookupError

    with pytest.raises(LookupError):
        await engine.state.record(broken)
    assert await engine.deliveries(await own_listener(engine, "job-1")) == []


async def test_listeners_go_when_the_job_has_ended_and_nothing_waits(engine, listener) -> None:
    await begin(engine, "job-1", f"{listener.url}/flaky/1")
    await begin(engine, "job-2", f"{listener.url}/ok")

    async def swept() -> list[int]:
        await engine.state.record(sweep_jobs)
        return [
            await engine.state.read(lambda con, job=job: count_endpoints(con, "job", job))
            for job in ("job-1", "job-2")
        ]

    assert await swept() == [1, 1]
    await tell(engine, "job-1")
    endpoint = await own_listener(engine, "job-1")
    await engine.until(endpoint, attempts=1)
    assert await swept() == [1, 1]
    await engine.pass_time(5)
    await engine.until(endpoint, state="delivered")
    assert await swept() == [0, 1]
    rows = await engine.state.read(
        lambda con: con.execute("SELECT id FROM service_jobs").fetchall()
    )
    assert rows == [("job-2",)]


async def test_a_listener_of_a_job_that_is_gone_is_switched_off_as_any_other(
    engine, listener
) -> None:
    await begin(engine, "job-1", f"{listener.url}/status/410")
    await tell(engine, "job-1")
    endpoint = await own_listener(engine, "job-1")
    await engine.until(endpoint, state="failed", status=410)
    assert (await engine.endpoint(endpoint)).state == "disabled_due_to_failed_deliveries"
    await engine.state.record(sweep_jobs)
    assert await own_listener(engine, "job-1") is None


async def test_the_key_is_made_once_followed_and_shown_a_while_longer(engine) -> None:
    state = engine.state
    assert await state.read(lambda con: public_keys(con, engine.at_ms)) == []
    await ensure_signing_key(state)
    await ensure_signing_key(state)
    (first,) = await state.read(lambda con: public_keys(con, engine.at_ms))
    assert first.keys() == {"kty", "n", "e", "kid", "use", "alg"}
    await state.record(
        lambda con: con.execute(
            "UPDATE webhook_signing_keys SET created_at_ms = created_at_ms - ?", [SIGNS_FOR_MS]
        ).fetchall()
    )
    await ensure_signing_key(state)
    shown = await state.read(lambda con: public_keys(con, engine.at_ms))
    assert [key["kid"] for key in shown][1:] == [first["kid"]]
    key = await state.read(lambda con: find_signing_key(con, state.sealer))
    assert (key.id, "PRIVATE" in repr(key)) == (shown[0]["kid"], False)
    later = engine.at_ms + 3 * DAY_MS
    shown = await state.read(lambda con: public_keys(con, later))
    assert len(shown) == 1
    assert first["kid"] not in [each["kid"] for each in shown]
    rows = await state.read(
        lambda con: con.execute("SELECT sealed FROM webhook_signing_keys").fetchall()
    )
    assert all(b"PRIVATE" not in bytes(row[0]) for row in rows)


async def test_without_a_key_that_opens_only_tokens_fail(engine, listener) -> None:
    alive = await engine.add(f"{listener.url}/ok")
    await begin(engine, "job-1", f"{listener.url}/status/200")
    await engine.state.record(
        lambda con: con.execute("UPDATE webhook_signing_keys SET sealed = ?", [b"x"]).fetchall()
    )
    await tell(engine, "job-1")
    await engine.raise_events()
    await engine.until(await own_listener(engine, "job-1"), error="secret_unreadable")
    await engine.until(alive, state="delivered")
