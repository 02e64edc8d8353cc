"""The limits of a connection: off unless set, refused where they would do nothing, compiled for the relay."""

from __future__ import annotations

import pytest

from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/providers"
NEW = {"provider": "openai", "name": "main", "apiKey": "k"}
ALL = {
    "maxConcurrent": 4,
    "requestsPerMinute": 60,
    "tokensPerMinute": 90_000,
    "minGapMs": 20,
    "queueDepth": 8,
    "queueTimeoutMs": 500,
}


async def test_limits_are_set_changed_and_lifted(management: Management) -> None:
    made = (await management.ask("POST", PATH, NEW, expect=201))["connection"]
    path = f"{PATH}/{made['id']}"
    assert {name: made[name] for name in ALL} == dict.fromkeys(ALL)
    assert management.snapshot()["connections"][0]["limits"] == {}

    changed = (await management.ask("PUT", path, ALL))["connection"]
    assert {name: changed[name] for name in ALL} == ALL
    assert management.snapshot()["connections"][0]["limits"] == {
        "max_concurrent": 4,
        "requests_per_minute": 60,
        "tokens_per_minute": 90_000,
        "min_gap_ms": 20,
        "queue_depth": 8,
        "queue_timeout_ms": 500,
    }

    await management.ask("PUT", path, {"name": "other", "queueTimeoutMs": None})
    limits = management.snapshot()["connections"][0]["limits"]
    assert limits["queue_timeout_ms"] == 10_000

    await management.ask("PUT", path, dict.fromkeys(ALL))
    assert management.snapshot()["connections"][0]["limits"] == {}


async def test_a_queue_that_nobody_would_wait_in_is_refused(management: Management) -> None:
    made = (await management.ask("POST", PATH, {**NEW, **ALL}, expect=201))["connection"]
    path = f"{PATH}/{made['id']}"
    lifted = dict.fromkeys(list(ALL)[:4])
    lifted["providerSpecificData"] = {"learnLimits": False}
    message, param = await management.refused("PUT", path, lifted)
    assert param == "queueDepth"
    assert "no effect" in message
    assert (await management.refused("PUT", path, {"queueDepth": None}))[1] == "queueTimeoutMs"
    assert (await management.ask("GET", path))["connection"]["maxConcurrent"] == 4
    del lifted["providerSpecificData"]
    await management.ask("PUT", path, lifted)
    limits = management.snapshot()["connections"][0]["limits"]
    assert limits == {"queue_depth": 8, "queue_timeout_ms": 500}, "they wait for what is learnt"


async def test_a_queue_of_nobody_is_said_as_a_combo_says_it(management: Management) -> None:
    body = {**NEW, "maxConcurrent": 1, "queueDepth": 0}
    made = (await management.ask("POST", PATH, body, expect=201))["connection"]
    assert made["queueDepth"] == 0
    limits = management.snapshot()["connections"][0]["limits"]
    assert limits == {"max_concurrent": 1, "queue_depth": 0}
    path = f"{PATH}/{made['id']}"
    assert (await management.refused("PUT", path, {"queueTimeoutMs": 50}))[1] == "queueTimeoutMs"
    assert (await management.refused("PUT", path, {"queueDepth": -1}))[1] == "queueDepth"


async def test_what_providers_tell_may_be_no_limit(management: Management) -> None:
    body = {**NEW, "providerSpecificData": {"learnLimits": False}}
    made = (await management.ask("POST", PATH, body, expect=201))["connection"]
    assert management.snapshot()["connections"][0]["limits"] == {"learns": False}
    change = {"providerSpecificData": {"learnLimits": None}}
    await management.ask("PUT", f"{PATH}/{made['id']}", change)
    assert management.snapshot()["connections"][0]["limits"] == {}
