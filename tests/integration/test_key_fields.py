"""Effects of single fields of a key on its calls: faults, the service tier, narrow scopes, its last use."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from typing import Any, Final

import httpx
import pytest

from fairlead import _core
from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

STATUSES: Final = {"error": 502, "overload": 503, "rate-limit": 429, "timeout": 504}
CHAOS: Final = {"chaosModeEnabled": True, "chaosRate": 1, "chaosLatencyMs": 1}
SCOPES: Final = {each["scope"]: each for each in _core.key_scopes()}


def call(gateway: Gateway, key: dict[str, Any], body: Any, path: str = CHAT) -> httpx.Response:
    return gateway.caller.post(path, json=body, headers={"Authorization": f"Bearer {key['key']}"})


def logged(gateway: Gateway, key: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The key's requests in the log, once there are so many."""

    def read() -> list[dict[str, Any]] | None:
        found = gateway.admin.get("/api/usage/request-logs", params={"keyId": key["id"]}).json()
        return found["logs"] if found["total"] >= count else None

    return eventually(read, "the requests are logged", within_s=8)


def test_a_key_is_given_the_faults_that_it_asks_for_and_no_provider_is_asked(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    upstream.script(reply(completion()))
    asked = len(upstream.requests)
    key = gateway.create_key(**CHAOS, chaosFaults=["error"])
    for fault, status in STATUSES.items():
        gateway.admin.patch(f"/api/keys/{key['id']}", json={"chaosFaults": [fault]})
        for path, body in (
            (CHAT, lane.body()),
            (CHAT, lane.body(stream=True)),
            ("/v1/messages", lane.body(max_tokens=9)),
            ("/v1/embeddings", {"model": lane.model, "input": "hi"}),
        ):
            answer = call(gateway, key, body, path)
            assert answer.status_code == status, (fault, path, answer.text)
            assert answer.headers["x-gateway-chaos"] == fault
            assert ("retry-after" in answer.headers) == (fault in {"overload", "rate-limit"})
    assert len(upstream.requests) == asked, "no provider is asked"
    rows = logged(gateway, key, 16)
    assert Counter(row["chaos"] for row in rows) == dict.fromkeys(STATUSES, 4)
    assert {row["attempts"] for row in rows} == {0}
    assert {row["costUsd"] for row in rows} == {0}

    gateway.admin.patch(f"/api/keys/{key['id']}", json={"chaosFaults": ["latency"]})
    late = call(gateway, key, lane.body())
    assert (late.status_code, late.headers["x-gateway-chaos"]) == (200, "latency")
    other = call(gateway, gateway.create_key(), lane.body())
    assert (other.status_code, other.headers.get("x-gateway-chaos")) == (200, None)
    gateway.admin.patch(f"/api/keys/{key['id']}", json={"chaosModeEnabled": False})
    assert "x-gateway-chaos" not in call(gateway, key, lane.body()).headers


def test_faults_come_at_their_rate(gateway: Gateway, upstream: Upstream, lane: Lane) -> None:
    upstream.script(reply(completion()))
    key = gateway.create_key(chaosModeEnabled=True, chaosRate=0.5, chaosFaults=["error"])
    statuses = Counter(call(gateway, key, lane.body()).status_code for _ in range(60))
    assert set(statuses) == {200, 502}
    assert 12 <= statuses[502] <= 48, "half of sixty, within five standard deviations"


@pytest.mark.parametrize(
    ("dialect", "mode", "tier"),
    [
        ("openai", "flex", "flex"),
        ("openai", "priority", "priority"),
        ("openai", "inherit", "auto"),
        ("openai-responses", "default", "default"),
        ("anthropic", "default", "standard_only"),
        ("anthropic", "priority", "auto"),
    ],
)
def test_the_service_tier_of_a_key_goes_before_the_callers(
    gateway: Gateway, upstream: Upstream, dialect: str, mode: str, tier: str
) -> None:
    upstream.script(reply({}, status=400))
    lane = gateway.add_lane(upstream, dialect=dialect)
    key = gateway.create_key(toolServiceMode=mode)
    call(gateway, key, lane.body(service_tier="auto"))
    assert upstream.requests[-1].json()["service_tier"] == tier


def test_a_scope_opens_exactly_what_it_names(gateway: Gateway) -> None:
    """Every scope on every route of management: refused by the gate, or not."""
    keys = {scope: gateway.create_key(scopes=[scope]) for scope in SCOPES}
    keys[""] = gateway.create_key()
    routes = [
        (route["method"], route["path"])
        for route in _core.routes()
        if route["tier"] in {"management", "admin", "session"} and route["surface"] == "management"
    ]
    assert len(routes) > 150
    tried = [("", route) for route in routes]
    # A whole matrix would be thousands of calls that the gate answers alike; the core's own test has it.
    for number, (scope, known) in enumerate(SCOPES.items()):
        named = [tuple(route) for route in known["routes"]]
        others = [route for route in routes if route not in named]
        tried += [(scope, route) for route in (*named, *others[number % 29 :: 29])]
    for scope, (method, path) in tried:
        named = [] if not scope else [tuple(route) for route in SCOPES[scope]["routes"]]
        # Names of nothing: what is opened answers 404 or says what is missing, and changes nothing.
        place = re.sub(r"\{[^}]*\}", "none", path)
        headers = {"Authorization": f"Bearer {keys[scope]['key']}"}
        answer = gateway.caller.request(method, place, headers=headers)
        is_refused = (
            answer.status_code == 403 and "scope" in answer.text
        ) or "session" in answer.text
        is_opened = (method, path) in named
        assert is_opened != bool(answer.status_code == 403), (scope, method, path, answer.text)
        assert is_opened or is_refused, answer.text


@pytest.mark.parametrize(
    ("endpoints", "opened"),
    [
        ([], {"management", "chat", "scraping"}),
        (["management"], {"management"}),
        (["chat"], {"chat"}),
        (["scraping"], {"scraping"}),
        (["scraping", "management"], {"management", "scraping"}),
    ],
)
def test_allowed_endpoints_know_scraping_and_management(
    gateway: Gateway, endpoints: list[str], opened: set[str]
) -> None:
    """What a scope opens is closed again where the key may not use that group of routes."""
    key = gateway.create_key(scopes=["read:health"], allowedEndpoints=endpoints)["key"]
    headers = {"Authorization": f"Bearer {key}", "X-API-Key": key}
    ask = gateway.caller.request
    statuses = {
        "management": ask("GET", "/api/resilience", headers=headers).status_code,
        "chat": ask("POST", "/v1/chat/completions", headers=headers, json={}).status_code,
        "scraping": ask("GET", "/api/crawl", headers=headers).status_code,
    }
    passed = {group for group, status in statuses.items() if status not in (401, 403)}
    assert passed == opened, statuses


def test_a_key_sees_its_own_usage_and_no_others(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    upstream.script(reply(completion()))
    own = gateway.create_key(
        scopes=["self:usage", "self:account-quota"], rateLimits=[{"limit": 100, "window": 60}]
    )
    other = gateway.create_key(rateLimits=[{"limit": 100, "window": 60}])
    for key in (own, other):
        assert call(gateway, key, lane.body()).status_code == 200
        logged(gateway, key, 1)
    headers = {"Authorization": f"Bearer {own['key']}"}

    def ask(path: str, expected: int = 200, **query: str) -> Any:
        answer = gateway.caller.get(path, headers=headers, params=query)
        assert answer.status_code == expected, answer.text
        return answer.json()

    for path in ("/api/usage/logs", "/api/usage/request-logs"):
        assert {row["keyId"] for row in ask(path)["logs"]} == {own["id"]}
        assert ask(path, 403, keyId=other["id"])["error"]["param"] == "keyId"
    rows = ask("/api/usage/history", groupBy="key")["history"]
    assert [row["keyId"] for row in rows] == [own["id"]]
    assert ask("/api/usage/token-limits", apiKeyId=own["id"])["limits"] == []
    ask("/api/usage/token-limits", 403, apiKeyId=other["id"])
    assert [key["keyId"] for key in ask("/api/rate-limits")["keys"]] == [own["id"]]
    every = gateway.create_key(scopes=["read:usage"])
    headers["Authorization"] = f"Bearer {every['key']}"
    ask("/api/usage/logs", keyId=other["id"])


def test_a_key_tells_when_it_was_last_used(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    upstream.script(reply(completion()))
    key = gateway.create_key(name=f"used-{secrets.token_hex(4)}", noLog=True)
    path = f"/api/keys/{key['id']}"
    assert gateway.admin.get(path).json()["lastUsedAt"] is None
    assert call(gateway, key, lane.body()).status_code == 200
    used = eventually(
        lambda: gateway.admin.get(path).json()["lastUsedAt"], "the use is shown", within_s=8
    )
    assert used > key["createdAt"]

    def is_listed() -> bool:
        listed = gateway.admin.get("/api/keys", params={"limit": 500}).json()["keys"]
        return [each["lastUsedAt"] for each in listed if each["id"] == key["id"]] == [used]

    eventually(is_listed, "the list shows it too", within_s=gateway.shown_within_s)


@pytest.mark.parametrize(
    ("path", "dialect"),
    [(CHAT, "openai"), ("/v1/messages", "anthropic"), ("/v1/responses", "responses")],
)
def test_a_conversation_may_ask_what_is_left(
    gateway: Gateway, upstream: Upstream, lane: Lane, path: str, dialect: str
) -> None:
    upstream.script(reply(completion()))
    asked = len(upstream.requests)
    key = gateway.create_key(
        allowUsageCommand=True, usageLimitEnabled=True, dailyUsageLimitUsd=5, unpricedModels="allow"
    )
    body: dict[str, Any] = {"model": lane.model}
    words = {"role": "user", "content": "@@om-usage"}
    if dialect == "responses":
        body["input"] = words["content"]
    else:
        body |= {"messages": [words], "max_tokens": 9}
    whole = call(gateway, key, body, path)
    assert whole.status_code == 200, whole.text
    assert "daily: $0.00 of $5.00 spent" in whole.text
    assert whole.json()["model"] == lane.model
    assert whole.headers["x-gateway-response-cost"].strip("0.") == ""
    streamed = call(gateway, key, body | {"stream": True}, path)
    assert streamed.headers["content-type"] == "text/event-stream"
    assert "daily: $0.00 of $5.00 spent" in streamed.text
    assert len(upstream.requests) == asked, "no provider is asked"
    other = gateway.create_key()
    call(gateway, other, body, path)
    assert len(upstream.requests) == asked + 1, "to a key without the right they are words like all"


@pytest.mark.one_node(reason="each worker knows what providers told itself")
def test_what_is_kept_back_of_a_window_closes_its_connection(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    first, second = (each["id"] for each in lane.connections)
    told = {
        "anthropic-ratelimit-unified-5h-utilization": "0.8",
        "anthropic-ratelimit-unified-5h-reset": "2100-01-01T00:00:00Z",
    }
    upstream.script(reply(completion(), headers=list(told.items())))
    key = gateway.create_key(allowUsageCommand=True)
    thresholds = {"quotaWindowThresholds": {"5h": 25.0}}
    expect(gateway.admin.put(f"/api/providers/{first}", json=thresholds), 200)
    for connection in (first, second):
        body = lane.body()
        headers = {"Authorization": f"Bearer {key['key']}", "X-Gateway-Connection": connection}
        assert gateway.caller.post(CHAT, json=body, headers=headers).status_code == 200

    def state(connection_id: str) -> str:
        shown = expect(gateway.admin.get(f"/api/providers/{connection_id}"), 200)["connection"]
        return str(shown["state"])

    eventually(lambda: state(first) == "policy-blocked", "the window closes it", within_s=8)
    assert state(second) == "active", "of the other only two percent are kept back"
    headers = {"Authorization": f"Bearer {key['key']}"}
    answer = gateway.caller.get("/api/usage/om-usage", headers=headers, params={"format": "json"})
    shown = {each["connectionId"]: each for each in answer.json()["providers"]}
    assert shown[first]["quotaWindowThresholds"] == {"5h": 25.0}
    assert shown[second]["quotaWindowThresholds"] == {"5h": 2.0}
    for bad in ({"5h": 100}, {"5 h": 1.0}, {"5h": -1.0}, {"5h": "x"}):
        refused = gateway.admin.put(f"/api/providers/{first}", json={"quotaWindowThresholds": bad})
        assert refused.status_code == 400
        assert refused.json()["error"]["param"].startswith("quotaWindowThresholds")
