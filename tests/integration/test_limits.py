"""What a key may use: hours, rates, sessions, tokens and money; across restarts, and when everybody asks at once."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import STALL, Gate, Upstream, completion, delta, reply, stream

TOKENS_IN, TOKENS_OUT = 7, 3
# 1,000 USD for a million output tokens: an answer of three costs 3,000 micro-dollars.
PRICES = {"m": {"input": 0, "output": 1000}}
COST_USD_MICROS = TOKENS_OUT * 1000


def bearer(key: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {key['key']}"}


def call(
    gateway: Gateway,
    lane: Lane,
    key: dict[str, Any],
    headers: dict[str, str] | None = None,
    **fields: Any,
) -> httpx.Response:
    return gateway.caller.post(
        CHAT, json=lane.body(**fields), headers={**bearer(key), **(headers or {})}
    )


def has_room(gateway: Gateway, lane: Lane, key: dict[str, Any], **fields: Any) -> bool:
    """Whether a call is let through, at the latest when another worker has given back what it did not use."""

    def is_served() -> bool:
        return call(gateway, lane, key, **fields).status_code == 200

    return eventually(is_served, "there is room", within_s=gateway.room_within_s, every_s=0.1)


def change(gateway: Gateway, key: dict[str, Any], **fields: Any) -> None:
    expect(gateway.admin.patch(f"/api/keys/{key['id']}", json=fields), 200)


def refusal(answer: httpx.Response, status: int = 429) -> tuple[str, str]:
    """Code and field of a refusal that says when to come back."""
    assert answer.status_code == status, answer.text
    if status == 429:
        assert int(answer.headers["retry-after"]) >= 1
    error = answer.json()["error"]
    return error["code"], error["param"]


@pytest.fixture
def priced(gateway: Gateway, upstream: Upstream) -> Lane:
    """A lane whose model has a price."""
    lane = gateway.add_lane(upstream, connections=0)
    lane.connections.append(
        gateway.add_connection(
            lane.node["id"], "sk-upstream-canary-limits", providerSpecificData={"prices": PRICES}
        )
    )
    return lane


def test_a_rate_counts_what_was_let_through(gateway: Gateway, lane: Lane) -> None:
    """Refusals of one rule leave the others untouched; each key has its own."""
    key = gateway.create_key(
        rateLimits=[{"limit": 3, "window": 86_400}, {"limit": 2, "window": 31_536_000}]
    )
    other = gateway.create_key(rateLimits=[{"limit": 3, "window": 86_400}])
    assert [call(gateway, lane, key).status_code for _ in range(2)] == [200, 200]
    for _ in range(4):
        assert refusal(call(gateway, lane, key)) == ("rate_limited", "rateLimits")
    change(gateway, key, rateLimits=[{"limit": 3, "window": 86_400}])
    assert has_room(gateway, lane, key), "two of three were used"
    assert refusal(call(gateway, lane, key)) == ("rate_limited", "rateLimits")
    assert call(gateway, lane, other).status_code == 200
    change(gateway, key, rateLimits=None)
    assert call(gateway, lane, key).status_code == 200


def test_hours(gateway: Gateway, lane: Lane) -> None:
    now = datetime.now(UTC)
    hours = {"enabled": True, "days": [0, 1, 2, 3, 4, 5, 6], "tz": "UTC"}
    ahead = [(now + timedelta(hours=number)).strftime("%H:%M") for number in (-1, 1, 2)]
    key = gateway.create_key(accessSchedule=hours | {"from": ahead[0], "until": ahead[1]})
    assert call(gateway, lane, key).status_code == 200
    change(gateway, key, accessSchedule=hours | {"from": ahead[1], "until": ahead[2]})
    assert refusal(call(gateway, lane, key), 403) == ("forbidden", "accessSchedule")
    listed = gateway.caller.get("/v1/models", headers=bearer(key))
    assert listed.status_code == 403, "the hours are for every route"
    closed = hours | {"from": ahead[1], "until": ahead[2], "enabled": False}
    change(gateway, key, accessSchedule=closed)
    assert call(gateway, lane, key).status_code == 200


def test_which_model_is_called(gateway: Gateway, lane: Lane) -> None:
    """The key's forced model goes before the header's, that before the body's; the key's rules hold for each."""
    key = gateway.create_key()
    routed = {"X-Route-Model": f"{lane.prefix}/routed"}
    call(gateway, lane, key, routed)
    assert lane.upstream.last.json()["model"] == "routed"
    change(gateway, key, forcedModel=f"{lane.prefix}/forced")
    answer = call(gateway, lane, key, routed)
    assert lane.upstream.last.json()["model"] == "forced"
    assert answer.headers["x-gateway-model"] == "forced"
    change(gateway, key, blockedModels=[f"{lane.prefix}/forced"])
    assert call(gateway, lane, key).status_code == 403
    change(gateway, key, blockedModels=[], forcedModel=None, disableNonPublicModels=True)
    assert refusal(call(gateway, lane, key), 403) == ("forbidden", "model"), "it is not listed"


def test_which_connections_are_used(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    second = lane.connections[1]["id"]
    key = gateway.create_key(connectionAccessMode="restricted", allowedConnections=[second])
    assert call(gateway, lane, key).status_code == 200
    assert upstream.last.bearer == lane.secrets[1]
    change(gateway, key, allowedConnections=["00000000-0000-4000-8000-000000000000"])
    assert refusal(call(gateway, lane, key), 403) == ("forbidden", "model")


def test_a_throttled_key_waits(gateway: Gateway, lane: Lane) -> None:
    key = gateway.create_key(throttleDelayMs=400)
    before = time.monotonic()
    assert call(gateway, lane, key).status_code == 200
    assert time.monotonic() - before >= 0.4


def test_sessions(gateway: Gateway, lane: Lane) -> None:
    key = gateway.create_key(maxSessions=2)
    for session in ("a", "b", "a"):
        assert call(gateway, lane, key, {"X-Session-Id": session}).status_code == 200
    refused = call(gateway, lane, key, {"X-Session-Id": "c"})
    assert refusal(refused) == ("rate_limited", "maxSessions")
    assert call(gateway, lane, key).status_code == 200, "a request without a session is in none"


def test_a_thousand_at_once_spend_a_budget_for_five_hundred(gateway: Gateway, priced: Lane) -> None:
    """Exactly five hundred pass, and what the records say is what the answers cost."""
    key = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=500 * COST_USD_MICROS / 1e6)
    body = priced.body(max_tokens=TOKENS_OUT)
    limits = httpx.Limits(max_connections=64)

    with httpx.Client(base_url=gateway.url, trust_env=False, timeout=60, limits=limits) as client:

        def ask(_: int) -> str:
            # While requests in progress reserve the remaining capacity, a caller is told to retry in a second.
            for _ in range(20):
                answer = client.post(CHAT, json=body, headers=bearer(key))
                if answer.status_code == 200:
                    return "served"
                assert refusal(answer) == ("budget_exceeded", "dailyUsageLimitUsd")
                if "in progress" not in answer.json()["error"]["message"]:
                    return "refused"
            return "refused"

        with ThreadPoolExecutor(64) as pool:
            came_to = Counter(pool.map(ask, range(1000)))
    assert came_to == {"served": 500, "refused": 500}

    def spent() -> bool:
        rows = expect(
            gateway.admin.get("/api/usage/history", params={"groupBy": "key", "limit": 500}), 200
        )["history"]
        mine = [row for row in rows if row["keyId"] == key["id"]]
        return sum(row["costUsdMicros"] for row in mine) == 500 * COST_USD_MICROS

    eventually(spent, "the records add up to the budget", within_s=10, every_s=0.2)


def test_the_month_of_a_zone_has_its_own_budget(gateway: Gateway, priced: Lane) -> None:
    key = gateway.create_key(
        usageLimitEnabled=True, monthlyUsageLimitUsd=0.01, usageLimitTz="Pacific/Kiritimati"
    )
    answer = call(gateway, priced, key, max_tokens=11)
    assert refusal(answer) == ("budget_exceeded", "monthlyUsageLimitUsd")
    assert "in each month" in answer.json()["error"]["message"]
    now = datetime.now(ZoneInfo("Pacific/Kiritimati"))
    following = (now.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0)
    left_s = (following - now).total_seconds()
    assert abs(int(answer.headers["retry-after"]) - left_s) < 60
    assert has_room(gateway, priced, key, max_tokens=10)


def test_a_request_that_may_cost_more_than_is_left_is_told_so(
    gateway: Gateway, priced: Lane
) -> None:
    key = gateway.create_key(usageLimitEnabled=True, weeklyUsageLimitUsd=0.01)
    answer = call(gateway, priced, key, max_tokens=11)
    assert refusal(answer) == ("budget_exceeded", "weeklyUsageLimitUsd")
    assert "ask for less output" in answer.json()["error"]["message"]
    assert has_room(gateway, priced, key, max_tokens=10)
    change(gateway, key, usageLimitEnabled=False)
    assert call(gateway, priced, key, max_tokens=11).status_code == 200, "the limit is switched off"


def test_a_caller_that_leaves_gets_back_what_was_not_used(gateway: Gateway, priced: Lane) -> None:
    key = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=0.01)
    priced.upstream.script([*stream(delta("a"), ended=False), STALL], reply(completion()))
    with gateway.caller.stream(
        "POST", CHAT, json=priced.body(stream=True, max_tokens=10), headers=bearer(key)
    ) as answer:
        next(answer.iter_bytes())
        request_id = answer.headers["x-gateway-request-id"]
        held = call(gateway, priced, key, max_tokens=10)
        assert refusal(held) == ("budget_exceeded", "dailyUsageLimitUsd")
    eventually(
        lambda: call(gateway, priced, key, max_tokens=7).status_code == 200,
        "the room is free again",
        within_s=5,
    )
    # What was delivered is paid for, although the provider did not come to say it.
    cut = gateway.record(request_id)
    assert (cut["outcome"], cut["tokensOutput"], cut["costUsdMicros"]) == ("client_gone", 1, 1000)


def asked_for(seen: Any) -> int:
    """How long an answer the provider was asked for at most."""
    body = seen.json()
    return int(body.get("max_completion_tokens", body.get("max_tokens", 0)))


def test_a_nearly_spent_key_is_served_a_shorter_answer(gateway: Gateway, lane: Lane) -> None:
    """Without `max_tokens` the length of an answer is only assumed: where that does not fit, less is asked for."""
    lane.upstream.script(reply(completion(tokens_in=7, tokens_out=3)))
    key = gateway.create_key()
    token_limit(gateway, key, tokenLimit=300)
    assert call(gateway, lane, key).status_code == 200
    prompt = -(-len(lane.upstream.last.body) // 3)
    asked = asked_for(lane.upstream.last)
    assert 100 <= asked <= 300 - prompt + 30, "most of what is left, and no more"
    named = call(gateway, lane, key, max_tokens=4_000)
    assert refusal(named)[0] == "token_limit_exceeded", "whoever names a length is held to it"
    long = call(gateway, lane, key, messages=[{"role": "user", "content": "x" * 900}])
    assert refusal(long)[0] == "token_limit_exceeded", "the prompt does not fit"
    assert call(gateway, lane, key, n=2).status_code == 429, "several answers are not cut"


def test_a_request_with_room_is_asked_as_it_came(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(completion()))
    key = gateway.create_key()
    token_limit(gateway, key, tokenLimit=100_000)
    assert call(gateway, lane, key).status_code == 200
    assert asked_for(lane.upstream.last) == 0


def test_shorter_answers_at_once_spend_no_more_than_is_left(gateway: Gateway, priced: Lane) -> None:
    """A cent buys ten output tokens here, and twenty cents two hundred: however many ask, no more is promised."""
    gate = Gate()
    priced.upstream.script([gate, *reply(completion())])
    key = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=0.2)
    with ThreadPoolExecutor(12) as pool:
        calls = [pool.submit(call, gateway, priced, key) for _ in range(12)]
        eventually(lambda: sum(each.done() for each in calls) >= 8, "the others", within_s=20)
        promised = [asked_for(seen) for seen in priced.upstream.requests]
        gate.open()
        answers = [each.result() for each in calls]
    assert all(promised)
    assert sum(promised) <= 200
    assert {answer.status_code for answer in answers} == {200, 429}


@pytest.mark.parametrize("dialect", ["openai", "openai-responses", "gemini"])
def test_what_is_left_bounds_the_answer_in_every_dialect(
    gateway: Gateway, upstream: Upstream, dialect: str
) -> None:
    lane = gateway.add_lane(upstream, dialect=dialect)
    key = gateway.create_key()
    token_limit(gateway, key, tokenLimit=400)
    upstream.script(reply({"error": {"message": "enough"}}, 400))
    call(gateway, lane, key)
    sent = upstream.last.json()
    name = {"openai": "max_completion_tokens", "openai-responses": "max_output_tokens"}
    bound = sent.get("generationConfig", {}).get("maxOutputTokens") or sent.get(
        name.get(dialect, "")
    )
    assert 16 <= bound <= 400


def test_money_is_spent_to_its_last_answer_and_no_further(gateway: Gateway, priced: Lane) -> None:
    priced.upstream.script(reply(completion()))
    key = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=0.02)
    assert call(gateway, priced, key).status_code == 200
    assert asked_for(priced.upstream.last) == 16
    short = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=0.01)
    assert refusal(call(gateway, priced, short)) == ("budget_exceeded", "dailyUsageLimitUsd")
    assert call(gateway, priced, short, max_tokens=10).status_code == 200


def test_a_provider_without_room_under_its_own_limit_is_not_fallen_back_to(
    gateway: Gateway, upstream: Upstream
) -> None:
    """A limit on a provider counts what that one served, and holds for whoever would come after a failure."""
    lanes = [gateway.add_lane(upstream) for _ in range(2)]
    name = f"two-{lanes[0].prefix}"
    models = [f"{lanes[0].prefix}/m0", f"{lanes[1].prefix}/m1"]
    expect(gateway.admin.post("/api/combos", json={"name": name, "models": models}), 201)
    key = gateway.create_key()
    second = lanes[1].node["id"]
    token_limit(gateway, key, scopeType="provider", scopeValue=second, tokenLimit=100)
    upstream.script(reply({"error": {"message": "busy"}}, 503), model="m0")

    def ask() -> httpx.Response:
        body = {**lanes[0].body(max_tokens=20), "model": name}
        return gateway.caller.post(CHAT, json=body, headers=bearer(key))

    answers = [ask() for _ in range(8)]
    served = [answer for answer in answers if answer.status_code == 200]
    assert served, "the one that took over served"
    assert answers[-1].status_code == 503, "then the first alone is asked, and fails"
    (limit,) = limits_of(gateway, key)
    assert limit["tokensUsed"] <= 100
    asked = [seen.json()["model"] for seen in upstream.requests]
    assert asked.count("m1") == len(served)


def test_a_count_of_tokens_is_a_request_and_no_tokens(gateway: Gateway, lane: Lane) -> None:
    key = gateway.create_key(rateLimits=[{"limit": 1, "window": 86_400}])
    spent = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=0)
    path = "/v1/messages/count_tokens"
    for one, statuses in ((key, [200, 429]), (spent, [200, 200])):
        found = [
            gateway.caller.post(path, json=lane.body(), headers=bearer(one)).status_code
            for _ in range(2)
        ]
        assert found == statuses


def token_limit(gateway: Gateway, key: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"apiKeyId": key["id"], "tokenLimit": 40, **fields}
    made: dict[str, Any] = expect(gateway.admin.post("/api/usage/token-limits", json=body), 201)
    return made


def limits_of(gateway: Gateway, key: dict[str, Any]) -> list[dict[str, Any]]:
    query = {"apiKeyId": key["id"]}
    shown = expect(gateway.admin.get("/api/usage/token-limits", params=query), 200)
    found: list[dict[str, Any]] = shown["limits"]
    return found


def test_a_new_limit_counts_what_was_used_before_it(gateway: Gateway, lane: Lane) -> None:
    """The write that sets it is answered when it is in force, the past of the key included."""
    key = gateway.create_key()
    answers = [call(gateway, lane, key) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    made = token_limit(gateway, key)
    room = 40 - 3 * (TOKENS_IN + TOKENS_OUT)
    answer = call(gateway, lane, key, max_tokens=room)
    assert refusal(answer) == ("token_limit_exceeded", "tokenLimit")
    for served in answers:
        gateway.shown_record(served.headers["x-gateway-request-id"])
    shown = limits_of(gateway, key)
    assert [(one["id"], one["tokensUsed"], one["remaining"]) for one in shown] == [
        (made["id"], 30, room)
    ]
    lifted = gateway.admin.delete("/api/usage/token-limits", params={"id": made["id"]})
    assert lifted.status_code == 200
    assert call(gateway, lane, key, max_tokens=room).status_code == 200


def test_a_limit_on_a_model_leaves_the_others_alone(gateway: Gateway, lane: Lane) -> None:
    key = gateway.create_key()
    token_limit(gateway, key, scopeType="model", scopeValue=f"{lane.prefix}/big", tokenLimit=1)
    assert call(gateway, lane, key, model=f"{lane.prefix}/small").status_code == 200
    refused = call(gateway, lane, key, model=f"{lane.prefix}/big")
    assert refusal(refused) == ("token_limit_exceeded", "tokenLimit")


@pytest.mark.parametrize("names", ["{prefix}/big", "{node}/big", "big"])
def test_no_other_name_leads_around_a_limit_on_a_model(
    gateway: Gateway, lane: Lane, names: str
) -> None:
    """An alias, a combo and another prefix count as what they lead to, in the past, too."""
    own = f"{lane.prefix}/big"
    limited = names.format(prefix=lane.prefix, node=lane.node["id"])
    alias, combo = f"a{secrets.token_hex(4)}", f"c{secrets.token_hex(4)}"
    expect(gateway.admin.post("/api/models/alias", json={"alias": alias, "model": own}), 200)
    expect(gateway.admin.post("/api/combos", json={"name": combo, "models": [own]}), 201)
    beside = f"{combo}-beside"
    both = {"name": beside, "models": [own, f"{lane.prefix}/small"]}
    expect(gateway.admin.post("/api/combos", json=both), 201)
    key = gateway.create_key()
    served = call(gateway, lane, key, model=alias)
    assert served.status_code == 200
    token_limit(gateway, key, scopeType="model", scopeValue=limited, tokenLimit=10)
    gateway.shown_record(served.headers["x-gateway-request-id"])
    assert [one["tokensUsed"] for one in limits_of(gateway, key)] == [TOKENS_IN + TOKENS_OUT]
    for name in (own, f"{lane.node['id']}/big", alias, combo):
        refused = call(gateway, lane, key, model=name)
        assert refusal(refused) == ("token_limit_exceeded", "tokenLimit"), name
    assert call(gateway, lane, key, model=beside).status_code == 200
    assert lane.upstream.last.json()["model"] == "small"


def test_room_is_reserved_for_what_a_combo_adds(gateway: Gateway, lane: Lane) -> None:
    """A combo's instructions are paid for by its caller, so a limit that they go beyond holds before the call."""
    combo = f"c{secrets.token_hex(4)}"
    instructed = {"name": combo, "models": [f"{lane.prefix}/m"], "systemMessage": "word " * 2_000}
    expect(gateway.admin.post("/api/combos", json=instructed), 201)
    key = gateway.create_key()
    token_limit(gateway, key, tokenLimit=1_000)
    assert call(gateway, lane, key, max_tokens=5).status_code == 200
    refused = call(gateway, lane, key, model=combo, max_tokens=5)
    assert refusal(refused) == ("token_limit_exceeded", "tokenLimit")


@pytest.mark.one_node(reason="the relay worker is killed")
def test_what_was_used_outlives_the_worker(gateway: Gateway, lane: Lane) -> None:
    """A worker that takes the place of a dead one asks what was used before it lets anybody spend."""
    key = gateway.create_key(rateLimits=[{"limit": 5, "window": 86_400}])
    token_limit(gateway, key, tokenLimit=1_000_000)
    for _ in range(4):
        assert call(gateway, lane, key).status_code == 200
    gateway.relay.kill()

    def answered() -> httpx.Response | None:
        try:
            answer = call(gateway, lane, key)
        except httpx.TransportError:
            return None
        # Until it knows, it refuses rather than overspends.
        return None if answer.status_code == 503 else answer

    assert (
        eventually(answered, "the new worker knows", within_s=10, every_s=0.05).status_code == 200
    )
    assert refusal(call(gateway, lane, key)) == ("rate_limited", "rateLimits")


def test_a_full_answer_says_its_own_limit(gateway: Gateway, lane: Lane) -> None:
    """An answer longer than was reserved counts whole: the next request meets the limit."""
    key = gateway.create_key()
    token_limit(gateway, key, tokenLimit=500)
    lane.upstream.script(reply(completion(tokens_in=100, tokens_out=900)))
    assert call(gateway, lane, key, max_tokens=5).status_code == 200
    assert refusal(call(gateway, lane, key, max_tokens=5)) == ("token_limit_exceeded", "tokenLimit")
