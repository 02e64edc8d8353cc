"""Statistics, sessions, limits, quota and prices: real numbers of what was settled."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest

from fairlead.records.provider_usage import ProviderUsage, UsageFigure, put_provider_usage
from fairlead.store.services import Services
from fairlead.usage.routes.quota_router import usable_percent
from tests.support.records import usage_record

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

HOUR = 3_600_000


def record(request_id: str, **fields: Any) -> dict[str, Any]:
    """A record of five seconds ago, of the key `k1`."""
    numbers = {
        "ts_ms": int(time.time() * 1000) - 5_000,
        "key_id": "k1",
        "connection_id": "c1",
        "tokens_input": 100,
        "tokens_output": 20,
        "tokens_cached": 0,
        "tokens_reasoning": 0,
        "tokens_cache_write": 0,
        "cost_usd_micros": 500,
        "latency_ms": 100.0,
    }
    return usage_record(request_id, **(numbers | fields))


async def settle(control: Any, *records: dict[str, Any]) -> None:
    """Puts records into the spool and waits until control has them."""
    spool = control.data_dir / "spool"
    spool.mkdir(exist_ok=True)
    path = spool / f"test-{time.monotonic_ns():020}.ndjson"
    new = path.with_suffix(".new")
    new.write_text("".join(json.dumps(one) + "\n" for one in records))
    new.rename(path)
    with anyio.fail_after(20):
        while path.exists():
            await anyio.sleep(0.05)


async def get(control: Any, path: str, status: int = 200, **headers: str) -> Any:
    answer = await control.client.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.one_control(False)
async def test_latency_stats_are_of_what_was_completed(control: Any) -> None:
    await settle(
        control,
        *(record(f"a{n}", latency_ms=100.0 + n, ttft_ms=10.0, stream=True) for n in range(9)),
        record("b", outcome="upstream_failed", status=502, latency_ms=60_000.0),
        record("c", provider="other", upstream_model="n", outcome="upstream_failed", status=502),
        record("old", ts_ms=int(time.time() * 1000) - 30 * HOUR, upstream_model="old"),
        record("refused", provider=None, upstream_model=None, outcome="refused", status=429),
    )
    found = await get(control, "/api/usage/model-latency-stats")

    assert found["windowHours"] == 24
    first, second = found["entries"]
    assert (first["provider"], first["model"], first["key"]) == ("lab", "m", "lab/m")
    assert (first["totalRequests"], first["successfulRequests"], first["successRate"]) == (
        10,
        9,
        0.9,
    )
    assert first["avgLatencyMs"] == first["avgE2ELatencyMs"] == 104.0
    assert first["p50LatencyMs"] == pytest.approx(104, rel=0.02)
    assert first["p99LatencyMs"] == pytest.approx(108, rel=0.02)
    assert first["latencyStdDev"] == pytest.approx(2.58, abs=1)
    assert first["avgTtftMs"] == 10.0
    assert first["avgTokensPerSecond"] == pytest.approx(20 / 0.094, rel=0.01)
    assert (second["provider"], second["successRate"], second["p50LatencyMs"]) == ("other", 0, None)

    narrow = await get(control, "/api/usage/model-latency-stats?minSamples=2&provider=lab&model=m")
    assert [entry["key"] for entry in narrow["entries"]] == ["lab/m"]
    wide = await get(control, "/api/usage/model-latency-stats?windowHours=48&maxRows=2")
    assert len(wide["entries"]) == 2
    assert wide["windowHours"] == 48
    for wrong in ("windowHours=0", "windowHours=721", "minSamples=0", "maxRows=50001"):
        await get(control, f"/api/usage/model-latency-stats?{wrong}", 400)


@pytest.mark.one_control(False)
@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        ([], "no-data"),
        ([(0, 0)], "healthy"),
        ([(50, 10)] * 6 + [(0, 10)] * 4, "healthy"),
        ([(50, 10)] * 3 + [(0, 10)] * 4 + [(5, 10)] * 3, "degraded"),
        ([(50, 10)] * 2 + [(5, 10)] * 8 + [(0, 0)] * 50, "thrash"),
    ],
)
async def test_cache_health_judges_by_warm_calls(
    control: Any, calls: list[tuple[int, int]], verdict: str
) -> None:
    rows = [
        record(f"r{n}", tokens_cached=read, tokens_cache_write=written)
        for n, (read, written) in enumerate(calls)
    ]
    # What the response cache answered wrote nothing to a provider's.
    await settle(control, *rows, record("hit", cache="hit", cache_kind="exact"))
    found = await get(control, "/api/usage/cache-health?range=1h")
    assert found["verdict"] == verdict
    assert found["totalCalls"] == len(calls)
    assert found["cacheReadTotal"] == sum(read for read, _ in calls)


@pytest.mark.one_control(False)
async def test_cache_health_finds_heavy_writes(control: Any) -> None:
    writes = [100] * 20 + [50_000]
    await settle(
        control,
        *(record(f"w{n}", tokens_cache_write=size) for n, size in enumerate(writes)),
        record("other", model="lab/n", upstream_model="n", tokens_cached=10),
    )
    found = await get(control, "/api/usage/cache-health")
    assert (found["coldCalls"], found["warmCalls"], found["uncachedCalls"]) == (21, 1, 0)
    assert found["writeP50"] == 100
    assert found["writeMax"] == 50_000
    assert (found["heavyWriteThreshold"], found["heavyWriteCalls"]) == (1024, 1)
    assert found["heavyWriteTokenShare"] == pytest.approx(50_000 / 52_000)
    assert found["writeReadRatio"] == 5200
    assert [(part["model"], part["calls"], part["verdict"]) for part in found["byModel"]] == [
        ("m", 21, "thrash"),
        ("n", 1, "healthy"),
    ]
    one = await get(control, "/api/usage/cache-health?range=7d&model=n")
    assert (one["totalCalls"], one["model"], one["range"]) == (1, "n", "7d")
    await get(control, "/api/usage/cache-health?range=2h", 400)


@pytest.mark.one_control(False)
async def test_a_connections_usage(control: Any) -> None:
    await settle(
        control,
        record("a"),
        record("b", upstream_model="n", outcome="upstream_failed", status=502, attempts=2),
        record("c", connection_id="c2"),
    )
    found = await get(control, "/api/usage/c1?range=24h")
    total = found["total"]
    assert (total["requests"], total["errors"], total["successRate"]) == (2, 1, 0.5)
    assert (total["costUsdMicros"], total["avgAttempts"]) == (1000, 1.5)
    assert total["p95LatencyMs"] == 100
    assert {one["model"]: one["requests"] for one in found["byModel"]} == {"m": 1, "n": 1}
    assert sum(point["requests"] for point in found["series"]) == 2
    await get(control, "/api/usage/nobody", 404)


@pytest.mark.one_control(False)
async def test_combos_are_compared(control: Any) -> None:
    steps = [{"kind": "model", "model": "openai/gpt-4o"}]
    for name in ("busy", "quiet"):
        body = {"name": name, "strategy": "priority", "models": steps}
        answer = await control.client.post("/api/combos", json=body)
        assert answer.status_code == 201, answer.text
    await settle(
        control,
        record("a", combo="busy", strategy="priority"),
        record("b", combo="busy", strategy="priority", upstream_model="n", attempts=2),
        record("c", combo="gone", strategy="weighted"),
        record("s", combo="busy", strategy="shadow", upstream_model="other", key_id=None),
        record("d"),
    )
    found = await get(control, "/api/combos/metrics")
    metrics = {one["comboName"]: one for one in found["metrics"]}
    assert list(metrics) == ["busy", "gone", "quiet"]
    assert metrics["busy"]["requests"] == 2
    assert metrics["busy"]["strategies"] == ["priority"]
    targets = metrics["busy"]["targets"]
    assert {(one["model"], one["share"], one["avgAttempts"]) for one in targets} == {
        ("m", 0.5, 1.0),
        ("n", 0.5, 2.0),
    }
    assert (metrics["quiet"]["requests"], metrics["quiet"]["successRate"]) == (0, None)
    only = await get(control, "/api/combos/metrics?comboName=quiet&range=30d")
    assert [one["comboName"] for one in only["metrics"]] == ["quiet"]
    await get(control, "/api/combos/metrics?comboName=never", 404)


@pytest.mark.one_control(False)
async def test_sessions_are_of_one_key(control: Any) -> None:
    now = int(time.time() * 1000)
    await settle(
        control,
        record("a", session_tag="s1", ts_ms=now - 9_000),
        record("b", session_tag="s1", model="lab/later", ts_ms=now - 8_000),
        record("c", session_tag="s1", key_id="k2", ts_ms=now - 7_000),
        record("d", session_id="sticky", key_id=None, ts_ms=now - 6_000),
        record("e", session_tag="hidden", no_log=True),
        record("f", session_tag="old", ts_ms=now - 2 * HOUR),
        record("g"),
    )
    found = await get(control, "/api/sessions")
    assert found["count"] == 3
    assert found["byApiKey"] == {"k1": 1, "k2": 1, "anonymous": 1}
    told = [(one["sessionId"], one["keyId"], one["requests"]) for one in found["sessions"]]
    assert told == [("sticky", None, 1), ("s1", "k2", 1), ("s1", "k1", 2)]
    assert [one["isSticky"] for one in found["sessions"]] == [True, False, False]
    assert found["sessions"][2]["model"] == "lab/later"
    assert (await get(control, "/api/sessions?minutes=180"))["count"] == 4


async def a_connection(control: Any) -> dict[str, Any]:
    answer = await control.client.post(
        "/api/providers", json={"provider": "openai", "name": "main", "apiKey": "sk-canary-1234567"}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["connection"]


def say(control: Any, connection_id: str, **told: Any) -> None:
    """A relay worker tells of a connection on the link."""
    services: Services = control.app.state.services
    stats = {
        "connections": [
            {
                "id": connection_id,
                "state": "active",
                "cooling_ms": 0,
                "last_error": None,
                "successes": 1,
                "failures": 0,
                "latency_ms": 1.0,
                **told,
            }
        ]
    }
    services.workers.__self__.poll_begins("ab", 1, 10**6, stats)  # type: ignore[attr-defined]


@pytest.mark.one_control(False)
async def test_rate_limits_tell_of_connections_and_keys(control: Any) -> None:
    connection = await a_connection(control)
    path = f"/api/providers/{connection['id']}"
    await control.client.put(path, json={"maxConcurrent": 4, "requestsPerMinute": 60})
    key = (
        await control.client.post(
            "/api/keys", json={"name": "limited", "rateLimits": [{"limit": 5, "window": 86_400}]}
        )
    ).json()
    resets_at_ms = int(time.time() * 1000) + 90 * 60_000
    say(
        control,
        connection["id"],
        state="cooling",
        cooling_ms=9_000,
        last_error="upstream_reset",
        quota=[{"name": "5h", "remaining": 0.25, "resets_at_ms": resets_at_ms, "is_quota": True}],
        lockouts=[{"model": "m", "until_ms": resets_at_ms, "failures": 2}],
        in_flight=3,
        limits={"queued": 2, "slots": 1, "requests": 40, "tokens": None},
    )
    await settle(
        control,
        record("a", key_id=key["id"], connection_id=connection["id"], cache="hit"),
        record("b", key_id=key["id"], outcome="refused", status=429, cache="miss"),
    )
    found = await get(control, "/api/rate-limits")
    [one] = found["connections"]
    assert (one["connectionId"], one["state"], one["coolingMs"]) == (
        connection["id"],
        "cooling",
        9000,
    )
    assert (one["requestsLastMinute"], one["tokensLastMinute"]) == (1, 120)
    assert (one["inFlight"], one["queued"]) == (3, 2)
    assert (one["limits"]["maxConcurrent"], one["limits"]["minGapMs"]) == (4, None)
    assert one["remaining"] == {"slots": 1, "requests": 40, "tokens": None}
    assert [(w["name"], w["remainingPercent"]) for w in one["windows"]] == [("5h", 25)]
    [limited] = found["keys"]
    assert [(rule["limit"], rule["used"]) for rule in limited["rules"]] == [(5, 1)]
    assert found["overview"] == {"connections": 1, "active": 1, "limited": 1, "keysWithLimits": 1}
    assert {lock["model"] for lock in found["lockouts"]} == {None, "m"}
    assert found["cacheStats"] == {"hitsLastHour": 1, "missesLastHour": 1, "hitRate": 0.5}
    other = await a_connection(control)
    of_one = await get(control, f"/api/rate-limits?connectionId={other['id']}")
    assert [each["connectionId"] for each in of_one["connections"]] == [other["id"]]
    assert (of_one["keys"], of_one["lockouts"]) == ([], [])
    of_key = await get(control, f"/api/rate-limits?keyId={key['id']}")
    assert (of_key["connections"], [each["keyId"] for each in of_key["keys"]]) == ([], [key["id"]])


@pytest.mark.one_control(False)
async def test_the_quota_endpoint(control: Any) -> None:
    connection = await a_connection(control)
    asked = {
        "name": "k",
        "allowUsageCommand": True,
        "usageLimitEnabled": True,
        "dailyUsageLimitUsd": 5,
        "monthlyUsageLimitUsd": 50,
        "usageLimitTz": "Asia/Kolkata",
    }
    key = (await control.client.post("/api/keys", json=asked)).json()
    mute = (await control.client.post("/api/keys", json={"name": "mute"})).json()
    path = "/api/usage/om-usage"

    refused = await get(control, path, 403, **control.as_principal("key", mute["id"]))
    assert refused["allowed"] is False
    assert refused["error"]["message"]

    headers = control.as_principal("key", key["id"])
    nothing = await control.client.get(path, headers=headers)
    assert nothing.text.splitlines()[-1] == "Unavailable"
    assert nothing.headers["content-type"].startswith("text/plain")

    await settle(control, record("a", key_id=key["id"], cost_usd_micros=1_250_000))
    resets_at_ms = int(time.time() * 1000) + 125 * 60_000
    quota = [
        {"name": "5h", "remaining": 0.51, "resets_at_ms": resets_at_ms, "is_quota": True},
        {"name": "7d", "remaining": 0.02, "resets_at_ms": None, "is_quota": True},
    ]
    say(control, connection["id"], quota=quota)

    text = (await control.client.get(path, headers=headers)).text.splitlines()
    assert text[0].startswith("daily: $1.25 of $5.00 spent, reset in ")
    assert text[1].startswith("monthly: $1.25 of $50.00 spent, reset in ")
    assert text[2] == "openai (main) 5h: 50% left, reset in 2h 5m"
    assert text[3] == "openai (main) 7d: 0% left, reset unknown"

    told = await get(control, f"{path}?format=json", **headers)
    assert told["allowed"] is True
    personal = told["personal"]
    assert (personal["dailySpentUsd"], personal["dailyLimitUsd"]) == (1.25, 5)
    assert personal["weeklyLimitUsd"] is None
    assert personal["dailyResetAtIso"].endswith("T18:30:00.000Z"), "midnight in India"
    assert (personal["monthlySpentUsd"], personal["monthlyLimitUsd"]) == (1.25, 50)
    provider = told["provider"]
    assert told["providers"] == [provider]
    assert (provider["connectionId"], provider["provider"]) == (connection["id"], "openai")
    assert provider["quotas"]["5h"]["remainingPercentage"] == 51, "what the provider itself says"
    assert provider["quotaWindowThresholds"] == {"5h": 2, "7d": 2}
    await get(control, f"{path}?format=xml", 400, **headers)
    assert provider["providerUsage"] == []

    # What the provider's own usage route told, as far as it did.
    figures = (
        UsageFigure("credits", "USD", used_micros=1_500_000, limit_micros=10_000_000),
        UsageFigure("balance", "points", remaining_micros=7_000_000, limit_micros=14_000_000),
    )
    own = ProviderUsage(connection["id"], figures=figures, last_error="sk-canary refused")
    await control.app.state.services.state.commit(lambda con: put_provider_usage(con, own))
    text = (await control.client.get(path, headers=headers)).text
    assert "\nopenai (main) credits: 1.50 USD used, 10.00 USD in all\n" in text
    assert "\nopenai (main) balance: 7.00 points left, 14.00 points in all\n" in text
    told = await get(control, f"{path}?format=json", **headers)
    spent, balance = told["provider"]["providerUsage"]
    assert (spent["usedMicros"], spent["remainingMicros"]) == (1_500_000, None)
    assert balance["remainingPercent"] == 50
    assert "canary" not in text + json.dumps(told)


def test_nothing_is_left_exactly_where_routing_stops() -> None:
    assert [usable_percent(left, 2) for left in (0, 2, 2.01, 51, 100)] == [0, 0, 1, 50, 100]
    assert usable_percent(40, 100) == 0


async def test_prices_that_are_set_are_in_force(control: Any) -> None:
    await a_connection(control)
    before = await get(control, "/api/pricing")
    model, known = next(iter(before["openai"].items()))
    assert known["source"] == "catalogue"

    def in_snapshot() -> dict[str, Any]:
        prices = {one["model"]: one for one in control.snapshot()["prices"]}
        return prices[f"openai/{model}"]

    old = in_snapshot()
    body = {
        "openai": {
            model: {"input": 1.25, "output": 2, "cachedInput": 0.1},
            "brand-new": {"input": 1, "output": 1},
        }
    }
    answer = await control.client.put("/api/pricing", json=body)
    assert answer.status_code == 200, answer.text
    told = answer.json()["openai"][model]
    assert {name: value for name, value in told.items() if value is not None} == {
        "input": 1.25,
        "output": 2,
        "cachedInput": 0.1,
        "tiers": [],
        "source": "operator",
    }
    assert {"cacheWrite", "perImage", "perSecond"} <= told.keys()
    assert in_snapshot() == {
        "model": f"openai/{model}",
        "input": 1_250_000,
        "output": 2_000_000,
        "cached_input": 100_000,
        "cache_write": None,
    }
    only = await get(control, "/api/pricing?provider=openai")
    assert only["openai"]["brand-new"]["source"] == "operator"
    assert len(only["openai"]) == len(before["openai"]) + 1

    taken = await control.client.delete(f"/api/pricing?provider=openai&model={model}")
    assert taken.json() == {"success": True, "deleted": 1}
    assert in_snapshot() == old
    assert (await control.client.delete("/api/pricing")).json()["deleted"] == 1
    assert await get(control, "/api/pricing") == before


async def test_tiers_of_a_price_are_kept_and_in_force(control: Any) -> None:
    await a_connection(control)
    tiers = [
        {"service": "flex", "input": 0.5, "output": 2.5},
        {"service": "priority", "above": 200_000, "cachedInput": 0.25},
    ]
    price = {"input": 1, "output": 5, "cacheWriteHour": 2, "tiers": tiers}
    answer = await control.client.put("/api/pricing", json={"openai": {"m": price}})
    assert answer.status_code == 200, answer.text
    told = (await get(control, "/api/pricing?provider=openai"))["openai"]["m"]
    assert told["cacheWriteHour"] == 2
    shown = [{k: v for k, v in tier.items() if v is not None} for tier in told["tiers"]]
    assert shown == tiers
    prices = {one["model"]: one for one in control.snapshot()["prices"]}
    assert prices["openai/m"]["cache_write_hour"] == 2_000_000
    assert prices["openai/m"]["tiers"] == [
        {"service": "flex", "input": 500_000, "output": 2_500_000},
        {"service": "priority", "above": 200_000, "cached_input": 250_000},
    ]


@pytest.mark.parametrize(
    ("tiers", "rule"),
    [
        ([{"input": 1}], "must name `service` or `above`, or both"),
        ([{"service": "flex"}], "must name at least one price"),
        ([{"service": "slow", "input": 1}], "'batch', 'flex', 'priority' or 'ultrafast'"),
        ([{"above": 0, "input": 1}], "greater than or equal to 1"),
        ([{"above": 5, "input": 1}, {"above": 5, "output": 1}], "put its prices together"),
        ([{"above": above, "input": 1} for above in range(1, 22)], "at most 20"),
    ],
)
async def test_wrong_tiers_are_refused_with_their_rule(
    control: Any, tiers: list[dict[str, Any]], rule: str
) -> None:
    before = await get(control, "/api/pricing")
    body = {"openai": {"m": {"input": 1, "output": 1, "tiers": tiers}}}
    answer = await control.client.put("/api/pricing", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert rule in error["message"]
    assert error["param"].startswith("openai.m.tiers")
    assert await get(control, "/api/pricing") == before


@pytest.mark.parametrize(
    "body",
    [
        {"nobody": {"m": {"input": 1, "output": 1}}},
        {"openai": {"m": {"input": -1, "output": 1}}},
        {"openai": {"m": {"input": 1, "output": None}}},
        {"openai": {"m": {}}},
        {"openai": {"m": {"input": 1, "output": 1, "other": 1}}},
        {"openai": {}},
        {"openai": {"a model": {"input": 1, "output": 1}}},
    ],
)
async def test_wrong_prices_are_refused(control: Any, body: dict[str, Any]) -> None:
    answer = await control.client.put("/api/pricing", json=body)
    assert answer.status_code == 400, answer.text
    assert (await control.client.delete("/api/pricing?model=m")).status_code == 400
    assert (await control.client.delete("/api/pricing?provider=openai")).status_code == 404
