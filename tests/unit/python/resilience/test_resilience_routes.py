"""`/api/resilience`: thresholds are checked, kept and given to the relay; what workers say is shown, kept and
forgotten.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairlead.gateway.resilience.fields import ResilienceSettings
from fairlead.gateway.resilience.persistence import StatePersistence
from fairlead.gateway.resilience.table import CLEARS_KEPT
from fairlead.moment import now_ms
from fairlead.records.webhook_endpoints import insert_endpoint, new_endpoint
from fairlead.store.services import Services, WorkerReport
from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/resilience"


async def make(management: Management, **fields: Any) -> dict[str, Any]:
    body = {"provider": "openai", "name": "main", "apiKey": "sk-canary-0123456789", **fields}
    made = await management.ask("POST", "/api/providers", body, expect=201)
    connection: dict[str, Any] = made["connection"]
    return connection


def say(management: Management, *said: dict[str, Any], cleared: int = 0, **stats: Any) -> None:
    """A live worker says this."""
    stats = {"connections": list(said), "cleared": cleared, **stats}
    report = WorkerReport("w", 1, True, 1, 1, stats)
    management.services.workers = lambda: [report]


def word(management: Management, connection_id: str, state: str, **fields: Any) -> dict[str, Any]:
    """What a worker says of a connection, of the record that it was last given."""
    (known,) = (one for one in management.snapshot()["connections"] if one["id"] == connection_id)
    return {
        "id": connection_id,
        "revision": known["revision"],
        "state": state,
        "reason": None,
        "until_ms": None,
        "cooling_ms": 0,
        "last_error": None,
        "successes": 0,
        "failures": 0,
        "latency_ms": None,
        "quota": [],
        "lockouts": [],
        **fields,
    }


async def listen_to(services: Services, event: str) -> None:
    """Makes an endpoint that the event is sent to."""
    endpoint = new_endpoint("gateway", "http://10.0.0.1/", [event], now_ms())
    secret = "whsec_" + "bmV3" * 8
    await services.state.record(
        lambda con: insert_endpoint(con, services.state.sealer, endpoint, secret)
    )


def held(management: Management) -> list[Any]:
    return [one.get("held") for one in management.snapshot()["connections"]]


async def test_thresholds_are_changed_in_part_and_given_to_the_relay(
    management: Management,
) -> None:
    before = await management.ask("GET", PATH)
    assert before["providerBreaker"]["openAfter"] == 12
    change = {"providerBreaker": {"openAfter": 9}, "quota": {"thresholdPercent": 5}}
    after = await management.ask("PATCH", PATH, change)
    assert after["providerBreaker"] == before["providerBreaker"] | {"openAfter": 9}
    again = await management.ask("PATCH", PATH, {"probeWaitMs": 100})
    assert again["quota"]["thresholdPercent"] == 5
    given = management.snapshot()["resilience"]
    assert given["provider_breaker"]["open_after"] == 9
    assert given["probe_wait_ms"] == 100
    assert given["clears"] == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, None),
        ({"quota": {}}, None),
        ({"quota": {"thresholdPercent": 101}}, "quota.thresholdPercent"),
        ({"quota": None}, "quota"),
        ({"terminalAfter": 0}, "terminalAfter"),
        ({"terminalAfter": "3"}, "terminalAfter"),
        ({"unknown": 1}, "unknown"),
        ({"modelLockout": {"statusCodes": [200]}}, "modelLockout.statusCodes[0]"),
        ({"providerBreaker": {"openAfter": 2}}, "providerBreaker.degradedAfter"),
        ({"connectionCooldown": {"maxMs": 1000}}, "connectionCooldown.baseMs"),
    ],
)
async def test_what_is_wrong_is_named(
    management: Management, change: dict[str, Any], field: str | None
) -> None:
    message, param = await management.refused("PATCH", PATH, change)
    assert param == field
    if field is None:
        assert message == "No valid fields to update"
    assert (await management.ask("GET", PATH))["terminalAfter"] == 3


def test_the_relays_own_defaults_are_the_same() -> None:
    """What is in force before an operator has set anything is what the reference says."""
    defaults = ResilienceSettings()
    rests = defaults.connection_cooldown
    assert (rests.base_ms, rests.max_ms, rests.limited_ms) == (3_000, 120_000, 5_000)
    breaker, own = defaults.provider_breaker, defaults.own_machine_breaker
    assert (breaker.degraded_after, breaker.open_after, breaker.reset_ms) == (7, 12, 30_000)
    assert (own.degraded_after, own.open_after, own.max_stretch) == (3, 5, 1)
    assert defaults.model_lockout.status_codes == [404]


async def test_states_are_shown_wherever_connections_are(management: Management) -> None:
    connection_id = (await make(management))["id"]
    off = (await make(management, name="off", isActive=False))["id"]
    until_ms = now_ms() + 60_000
    quota = [{"name": "5h", "remaining": 0.0, "resets_at_ms": until_ms, "is_quota": True}]
    said = word(
        management,
        connection_id,
        "quota-exhausted",
        until_ms=until_ms,
        cooling_ms=60_000,
        quota=quota,
    )
    breaker = {"id": "openai", "phase": "open", "failures": 12, "until_ms": until_ms}
    say(management, said, providers=[breaker])
    listed = (await management.ask("GET", "/api/providers"))["connections"]
    states = {one["id"]: (one["state"], one["stateUntil"] is not None) for one in listed}
    assert states == {connection_id: ("quota-exhausted", True), off: ("deactivated", False)}
    one = (await management.ask("GET", f"/api/providers/{connection_id}"))["connection"]
    assert one["state"] == "quota-exhausted"
    shown = await management.ask("GET", PATH)
    by_id = {each["id"]: each for each in shown["connections"]}
    assert by_id[off]["state"] == "deactivated"
    assert by_id[connection_id]["state"] == "quota-exhausted"
    assert by_id[connection_id]["quota"][0]["remainingPercent"] == 0
    assert (shown["breakers"][0]["provider"], shown["breakers"][0]["state"]) == ("openai", "open")
    health = await management.ask("GET", "/api/monitoring/health")
    assert health["connectionHealth"][0]["state"] == "quota-exhausted"


async def test_what_must_outlive_a_worker_is_kept_until_it_is_mended(
    management: Management,
) -> None:
    connection_id = (await make(management))["id"]
    watch = StatePersistence(management.services)
    say(management, word(management, connection_id, "cooling", cooling_ms=5))
    await watch.check()
    assert held(management) == [None]
    gone = word(management, connection_id, "terminal", reason="credits_exhausted")
    say(management, gone)
    await watch.check()
    kept = {"state": "terminal", "reason": "credits_exhausted", "until_ms": None}
    assert held(management) == [kept]
    # Without any worker, and from one that has just begun, it is still known.
    management.services.workers = list
    shown = (await management.ask("GET", f"/api/providers/{connection_id}"))["connection"]
    assert (shown["state"], shown["stateReason"]) == ("terminal", "credits_exhausted")
    # A rename is no mending, another credential is; what was said of the old one counts no more.
    await management.ask("PUT", f"/api/providers/{connection_id}", {"name": "renamed"})
    assert held(management) == [kept]
    fresh = {"apiKey": "sk-canary-another-one"}
    await management.ask("PUT", f"/api/providers/{connection_id}", fresh)
    assert held(management) == [None]
    say(management, gone)
    await watch.check()
    assert held(management) == [None]


async def test_a_reset_is_carried_out_once_and_stale_words_do_not_undo_it(
    management: Management,
) -> None:
    connection_id = (await make(management))["id"]
    watch = StatePersistence(management.services)
    gone = word(management, connection_id, "terminal", reason="banned")
    say(management, gone)
    await watch.check()
    body = {"connection": connection_id}
    assert await management.ask("POST", f"{PATH}/reset", body) == {"success": True}
    assert held(management) == [None]
    (clear,) = management.snapshot()["resilience"]["clears"]
    assert (clear["number"], clear["connection"], clear["model"]) == (1, connection_id, None)
    await watch.check()
    assert held(management) == [None], "said by a worker that has not forgotten yet"
    say(management, gone, cleared=1)
    await watch.check()
    assert held(management) != [None], "said of what happened after"
    await management.ask("POST", f"{PATH}/reset")
    assert held(management) == [None]
    await management.ask("POST", f"{PATH}/reset", {"provider": "openai"})
    assert len(management.snapshot()["resilience"]["clears"]) == 3
    await management.ask("POST", f"{PATH}/reset", {"connection": "none"}, expect=404)
    await management.ask("POST", f"{PATH}/reset", {"provider": "none"}, expect=400)
    await management.ask("POST", f"{PATH}/reset", {"provider": "mistral"}, expect=404)


async def test_an_empty_quota_is_kept_until_its_reset_and_told_once(
    management: Management,
) -> None:
    connection_id = (await make(management))["id"]
    services = management.services
    await listen_to(services, "quota.exceeded")
    own = Management(management.client, replace(services))
    watch = StatePersistence(own.services)
    until_ms = now_ms() + 3_600_000
    said = word(own, connection_id, "quota-exhausted", until_ms=until_ms, cooling_ms=3_600_000)
    for _ in range(3):
        say(own, said)
        await watch.check()
    assert held(management)[0]["until_ms"] == until_ms
    say(own, word(own, connection_id, "active", successes=1))
    await watch.check()
    assert held(management) == [None]
    rows = await services.state.read(
        lambda con: con.execute("SELECT event, body FROM webhook_messages").fetchall()
    )
    assert [event for event, _ in rows] == ["quota.exceeded"]
    assert connection_id in rows[0][1]


async def test_an_empty_quota_is_told_once_by_the_controls_of_one_database(
    management: Management,
) -> None:
    connection_id = (await make(management))["id"]
    services = management.services
    await listen_to(services, "quota.exceeded")
    here, there = (Management(management.client, replace(services)) for _ in range(2))
    watch, watch_there = StatePersistence(here.services), StatePersistence(there.services)
    until_ms = now_ms() + 3_600_000
    said = word(here, connection_id, "quota-exhausted", until_ms=until_ms, cooling_ms=3_600_000)
    say(here, said)
    await watch.check()
    # The workers of the other control have not heard of it yet; then they have, and say the same.
    say(there, word(there, connection_id, "active"))
    await watch_there.check()
    assert held(management)[0]["until_ms"] == until_ms
    say(there, said)
    await watch_there.check()
    rows = await services.state.read(
        lambda con: con.execute("SELECT event FROM webhook_messages").fetchall()
    )
    assert rows == [("quota.exceeded",)]
    # It is over for all where one finds it over.
    say(there, word(there, connection_id, "active", successes=1))
    await watch_there.check()
    assert held(management) == [None]


async def test_model_cooldowns_are_listed_and_ended(management: Management) -> None:
    connection_id = (await make(management))["id"]
    until_ms = now_ms() + 60_000
    locks = [
        {"model": "gone", "until_ms": until_ms, "failures": 2},
        {"model": "over", "until_ms": now_ms() - 1, "failures": 1},
    ]
    said = word(management, connection_id, "active", lockouts=locks)
    say(management, said)
    listed = await management.ask("GET", f"{PATH}/model-cooldowns")
    assert listed["total"] == 1
    (one,) = listed["cooldowns"]
    assert (one["provider"], one["connection"], one["model"]) == ("openai", connection_id, "gone")
    assert (one["failures"], 0 < one["remainingMs"] <= 60_000) == (2, True)
    for body in (
        {"provider": "openai", "model": "gone"},
        {"provider": "openai", "connection": connection_id, "model": "gone"},
        {"all": True},
    ):
        await management.ask("DELETE", f"{PATH}/model-cooldowns", body)
    models = [clear["model"] for clear in management.snapshot()["resilience"]["clears"]]
    assert models == ["gone", "gone", "*"]
    for body, field in (
        ({}, "provider"),
        ({"provider": "openai"}, "model"),
        ({"all": True, "model": "m"}, "all"),
    ):
        refused = await management.refused("DELETE", f"{PATH}/model-cooldowns", body)
        assert refused[1] == field


async def test_what_was_forgotten_does_not_grow(management: Management) -> None:
    from fairlead.gateway.resilience.table import Clear, add_clear, newest_clear

    def work(con: Any) -> int:
        for _ in range(CLEARS_KEPT + 10):
            add_clear(con, Clear(model="*"))
        return newest_clear(con)

    assert await management.services.state.commit(work) == CLEARS_KEPT + 10
    clears = management.snapshot()["resilience"]["clears"]
    assert [one["number"] for one in clears] == list(range(11, CLEARS_KEPT + 11))
