"""How near questions must be, learnt by each partition from answers that could have been given from the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.test_response_cache import call, is_hit
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.upstream import Upstream, completion, reply

AT = "/api/cache/thresholds"
BASE = 0.97
COUNTRIES = [
    "Australia",
    "Austria",
    "Belgium",
    "Brazil",
    "Bulgaria",
    "Canada",
    "Chile",
    "Croatia",
    "Cuba",
    "Denmark",
    "Egypt",
    "Estonia",
    "Finland",
    "France",
    "Germany",
    "Ghana",
    "Greece",
    "Hungary",
    "Iceland",
    "India",
    "Iran",
    "Iraq",
    "Ireland",
    "Israel",
    "Italy",
    "Jamaica",
    "Japan",
    "Kenya",
    "Latvia",
    "Libya",
    "Malta",
    "Mexico",
    "Morocco",
    "Nepal",
    "Norway",
    "Peru",
    "Poland",
    "Portugal",
    "Romania",
    "Spain",
    "Sweden",
    "Turkey",
    "Uganda",
    "Ukraine",
]


def asked(country: str) -> tuple[str, str]:
    """Two questions that ask the same, less near than `BASE`."""
    return f"What is the capital of {country}?", f"Please tell me what the capital of {country} is."


@pytest.mark.slow
def test_a_partition_learns_keeps_and_forgets_its_threshold(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    gateway = gateways()
    lane = gateway.add_lane(upstream)
    admin = gateway.admin
    wanted = {
        "vectorCacheEnabled": True,
        "vectorCacheThreshold": BASE,
        "vectorCacheLearning": True,
    }
    expect(admin.patch("/api/settings", json=wanted), 200)

    def learnt() -> list[Any]:
        told = expect(admin.get(AT), 200)
        assert (told["isLearning"], told["base"]) == (True, BASE)
        found: list[Any] = told["thresholds"]
        return found

    def ready() -> bool:
        return bool(expect(admin.get("/api/cache"), 200)["vectorCache"]["state"] == "ready")

    def teach(country: str, other: str = "", headers: dict[str, str] | None = None) -> bool:
        """Asks both questions, the second with another answer if one is given; whether it was a hit."""
        first, second = asked(country)
        upstream.script(reply(completion(f"It is {country} City.")))
        assert not is_hit(call(lane, say=first))
        upstream.script(reply(completion(other or f"It is {country} City.")))
        return is_hit(call(lane, headers, say=second))

    eventually(ready, "the vectors are loaded", within_s=30)
    assert learnt() == []
    taught = 0
    for country in COUNTRIES:
        if teach(country):
            break
        taught += 1
    else:
        pytest.fail(f"nothing was learnt: {learnt()}")
    assert taught >= 20, "few answers prove nothing"
    (one,) = learnt()
    assert BASE - 0.15 <= one["threshold"] < BASE
    assert (one["right"] >= 20, one["wrong"], one["model"]) == (True, 0, lane.model)
    strict = {"X-Gateway-Cache-Threshold": "0.999"}
    assert not teach(COUNTRIES[taught + 1], headers=strict), (
        "a caller may be stricter than what was learnt"
    )
    # A worker that dies keeps what it wrote, about every ten seconds.
    eventually((gateway.data_dir / "cache" / "thresholds").exists, "it is written", within_s=20)
    gateway.kill_all()
    gateway.start()
    eventually(ready, "the vectors are loaded again", within_s=30)
    (again,) = learnt()
    assert again["threshold"] < BASE
    assert again["partition"] == one["partition"]
    # One answer that would have been wrong, and nothing like it is answered from the cache again.
    exact = {"X-Gateway-Cache-Mode": "exact"}
    assert not teach(COUNTRIES[taught + 2], "Nobody knows.", exact)
    (raised,) = learnt()
    assert raised["wrong"] == 1
    assert raised["threshold"] > again["threshold"]
    assert not teach(COUNTRIES[taught + 3])
    assert expect(admin.delete(AT, params={"partition": "0" * 64}), 200)["removed"] == 0
    assert expect(admin.delete(AT, params={"partition": one["partition"]}), 200)["removed"] == 1
    assert learnt() == []
    assert not teach(COUNTRIES[taught + 4])
    refused = admin.delete(AT, params={"partition": "x"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "partition")
    gateway.assert_keeps_secrets()


def test_thresholds_are_shown_to_those_who_manage_alone(gateway: Gateway) -> None:
    told = expect(gateway.admin.get(AT), 200)
    assert (told["isLearning"], told["thresholds"]) == (False, [])
    for method in ("GET", "DELETE"):
        assert gateway.caller.request(method, AT).status_code in {401, 403}
