"""Every field of a key's policy on every inference route and in every form of credential: one gate, no way around it.

The matrix is made of the route table. A route without an example in `tests/support/inference.py` fails here by name.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any, Final

import httpx
import pytest

from tests.support.inference import EXAMPLES, inference_routes
from tests.support.processes import Gateway, Lane, expect
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Seen, Upstream, completion, reply

FORMS: Final[dict[str, Callable[[str], dict[str, str]]]] = {
    "Authorization": lambda key: {"Authorization": f"Bearer {key}"},
    "x-api-key": lambda key: {"x-api-key": key},
    "x-goog-api-key": lambda key: {"x-goog-api-key": key},
}
ROUTES: Final = inference_routes()


def cells(*axes: Iterable[str]) -> list[Any]:
    """Every combination, each in every form of credential. Every third combination is always tried, in one form in
    turn; the others are slow.
    """
    found = []
    for number, combination in enumerate(product(*axes)):
        for at, form in enumerate(FORMS):
            is_tried = number % 3 == 0 and at == number // 3 % len(FORMS)
            found.append(
                pytest.param(*combination, form, marks=[] if is_tried else [pytest.mark.slow])
            )
    return found


NO_MODEL: Final = {
    "POST /v1/search",
    "POST /v1/web/fetch",
    "POST /v1/session-leases",
    "POST /v1/conversations",
    "POST /v1/conversations/{id}",
    "POST /v1/conversations/{id}/items",
    "POST /ollama/api/show",
    "POST /v1/videos/{id}/remix",
}
WITH_MODEL: Final = [
    route
    for route in ROUTES
    if route in EXAMPLES and EXAMPLES[route].body and route not in NO_MODEL
]
# Google's clients name a model for videos without a prefix, for every key.
RESOLVING: Final = [route for route in WITH_MODEL if EXAMPLES[route].dialect != "gemini"]
PAID: Final = [route for route in WITH_MODEL if not EXAMPLES[route].is_free]


@dataclass
class Field:
    """What of the stage a rule needs to be written down: a lane of each dialect, a combo of each one's model."""

    gateway: Gateway
    lanes: dict[str, Lane]
    combos: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)

    def key(self, fields: dict[str, Any]) -> str:
        """A key with these fields, made once: nothing of it is used up."""
        name = repr(fields)
        if name not in self.keys:
            self.keys[name] = self.gateway.create_key(**fields)["key"]
        return self.keys[name]

    def lane(self, route: str) -> Lane:
        """The one whose dialect the route is asked in."""
        return self.lanes[EXAMPLES[route].dialect]

    def combo(self, route: str) -> str:
        return self.combos[EXAMPLES[route].dialect]

    def asked(self, route: str) -> list[Seen]:
        """What its provider was asked for: how far a video is, it is asked by nobody's call."""
        return [seen for seen in self.lane(route).upstream.requests if seen.method == "POST"]


@pytest.fixture(scope="module")
def stage(gateway: Gateway) -> Any:
    with Upstream() as upstream, Upstream() as studio:
        # Whatever is asked for is in it.
        everything = {"data": [], "results": [], "pages": [], "text": "hi", "input_tokens": 1}
        everything["output"] = []
        upstream.script(reply({**completion(), **everything}))
        studio.script(reply({"name": "models/m/operations/x"}))
        lanes = {
            "openai": gateway.add_lane(upstream, connections=2),
            "gemini": gateway.add_lane(studio, connections=2, dialect="gemini"),
            "openai-responses": gateway.add_lane(
                upstream, connections=2, dialect="openai-responses"
            ),
        }
        combos = {}
        for dialect, lane in lanes.items():
            combos[dialect] = f"matrix-{secrets.token_hex(4)}"
            body = {"name": combos[dialect], "models": [lane.model]}
            expect(gateway.admin.post("/api/combos", json=body), 201)
        yield Field(gateway, lanes, combos)


def ask(
    stage: Field,
    route: str,
    key: str,
    form: str = "Authorization",
    model: str | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """The route's example, by the key in this form, for the lane's own model unless another is named."""
    example = EXAMPLES[route]
    method, path = route.split(" ")
    model = model or stage.lane(route).model
    body = example.body(model) if example.body else None
    path = (example.path or path).replace("{model}", model)
    sent: dict[str, Any] = {"json": body}
    if example.file:
        sent = {
            "data": body,
            "files": {example.file: ("a.bin", b"abc", "application/octet-stream")},
        }
    with httpx.Client(
        base_url=stage.gateway.url, trust_env=False, timeout=20, verify=NO_AUTHORITIES
    ) as client:
        told = {**FORMS[form](key), **(headers or {})}
        return client.request(method, path, headers=told, **sent)


def refused(answer: httpx.Response, status: int) -> None:
    """With this status, in the route's own shape of errors."""
    assert answer.status_code == status, answer.text
    assert answer.json()["error"], answer.text
    if status == 429:
        assert int(answer.headers["retry-after"]) >= 1


def passed(answer: httpx.Response, route: str | None = None) -> None:
    """Through the gate. What is behind it may not know the model that is asked for."""
    expected = EXAMPLES[route].passes if route else (200, 404)
    assert answer.status_code in expected, answer.text


def called(seen: Seen) -> str:
    """The model that a provider was asked for, in its address, in JSON or in a form."""
    if addressed := re.search(r"/models/([^/:]+):predictLongRunning", seen.target):
        return addressed[1]
    found = re.search(rb'name="model"\r\n\r\n([^\r]+)\r\n', seen.body)
    return found[1].decode() if found else str(seen.json()["model"])


def test_every_inference_route_has_an_example() -> None:
    missing = [route for route in ROUTES if route not in EXAMPLES]
    assert not missing, f"give tests/support/inference.py an example of {missing}"
    stale = [route for route in EXAMPLES if route not in ROUTES]
    assert not stale, f"tests/support/inference.py has examples of routes that are no more: {stale}"


# What holds on every route, whatever it is asked for.
IN_ALL: Final[dict[str, Callable[[], dict[str, Any]]]] = {
    "isActive": lambda: {"isActive": False},
    "isBanned": lambda: {"isBanned": True},
    "expiresAt": lambda: {"expiresAt": "2020-01-01T00:00:00Z"},
    "accessSchedule": lambda: {"accessSchedule": _not_today()},
    "allowedEndpoints": lambda: {"allowedEndpoints": ["scraping"]},
}


def _not_today() -> dict[str, Any]:
    day = (datetime.now(UTC).weekday() + 1 + 3) % 7
    return {"enabled": True, "from": "00:00", "until": "23:59", "days": [day], "tz": "UTC"}


@pytest.mark.parametrize(("route", "field", "form"), cells(ROUTES, IN_ALL))
def test_a_key_that_may_not_be_used(stage: Field, route: str, field: str, form: str) -> None:
    is_nobodys = EXAMPLES[route].is_owned and field in ("isActive", "isBanned", "expiresAt")
    status = 401 if is_nobodys else 403
    refused(ask(stage, route, stage.key(IN_ALL[field]()), form), status)


@pytest.mark.parametrize(("route", "form"), cells(ROUTES))
def test_a_key_without_limits_passes_and_a_stranger_does_not(
    stage: Field, route: str, form: str
) -> None:
    """What the other tests refuse is refused for its one reason."""
    passed(ask(stage, route, stage.gateway.key, form), route)
    refused(ask(stage, route, "sk-fl-" + "x" * 49, form), 401)


# What a key may ask for: fields, and the model that is refused with them.
OF_MODELS: Final[dict[str, Callable[[Field, str], tuple[dict[str, Any], str]]]] = {
    "allowedModels": lambda stage, route: (
        {"modelAccessMode": "restricted", "allowedModels": ["other/*"]},
        stage.lane(route).model,
    ),
    "blockedModels": lambda stage, route: (
        {"blockedModels": [stage.lane(route).model]},
        stage.lane(route).model,
    ),
    "blockedModels by combo": lambda stage, route: (
        {"blockedModels": [stage.combo(route)]},
        stage.combo(route),
    ),
    "allowedCombos": lambda stage, route: ({"allowedCombos": ["another"]}, stage.combo(route)),
    "allowedConnections": lambda stage, route: (
        {
            "connectionAccessMode": "restricted",
            "allowedConnections": ["00000000-0000-4000-8000-000000000000"],
        },
        stage.lane(route).model,
    ),
    "allowAutoCombos": lambda *_: ({"allowAutoCombos": False}, "auto"),
    "allowAutoCombos of a channel": lambda *_: ({"allowAutoCombos": False}, "auto/cheap"),
    "disableNonPublicModels": lambda stage, route: (
        {"disableNonPublicModels": True},
        stage.lane(route).model,
    ),
    "forcedModel": lambda stage, route: (
        {"forcedModel": "blocked/model", "blockedModels": ["blocked/*"]},
        stage.lane(route).model,
    ),
}


@pytest.mark.parametrize(("route", "field", "form"), cells(WITH_MODEL, OF_MODELS))
def test_a_model_that_a_key_may_not_ask_for(
    stage: Field, route: str, field: str, form: str
) -> None:
    fields, model = OF_MODELS[field](stage, route)
    asked = len(stage.asked(route))
    refused(ask(stage, route, stage.key(fields), form, model), 403)
    assert len(stage.asked(route)) == asked, "nobody was asked"


@pytest.mark.parametrize(("route", "form"), cells(PAID))
def test_a_model_without_a_price_meets_a_limit_in_dollars(
    stage: Field, route: str, form: str
) -> None:
    fields = {"usageLimitEnabled": True, "dailyUsageLimitUsd": 5, "unpricedModels": "refuse"}
    asked = len(stage.asked(route))
    for model in (stage.lane(route).model, stage.combo(route)):
        answer = ask(stage, route, stage.key(fields), form, model)
        refused(answer, 403)
        assert f"`{stage.lane(route).model}` has no price" in answer.text
        assert "PUT /api/pricing" in answer.text
    assert len(stage.asked(route)) == asked, "nobody was asked"


@pytest.mark.parametrize(("route", "form"), cells(WITH_MODEL))
def test_a_rate_holds_on_every_route(stage: Field, route: str, form: str) -> None:
    limits = {"rateLimits": [{"limit": 1, "window": 86_400}]}
    key = stage.gateway.create_key(**limits)["key"]
    passed(ask(stage, route, key, form), route)
    refused(ask(stage, route, key, form), 429)


@pytest.mark.parametrize(("route", "form"), cells(WITH_MODEL))
def test_sessions_hold_on_every_route(stage: Field, route: str, form: str) -> None:
    key = stage.gateway.create_key(maxSessions=1)["key"]
    passed(ask(stage, route, key, form, headers={"X-Session-Id": "one"}), route)
    refused(ask(stage, route, key, form, headers={"x_session_id": "two"}), 429)
    passed(ask(stage, route, key, form, headers={"X-Session-Id": "one"}), route)


@pytest.mark.parametrize(("route", "form"), cells(PAID))
def test_money_and_tokens_hold_where_they_are_spent(stage: Field, route: str, form: str) -> None:
    for limit in ("dailyUsageLimitUsd", "weeklyUsageLimitUsd", "monthlyUsageLimitUsd"):
        broke = stage.key({"usageLimitEnabled": True, limit: 0})
        refused(ask(stage, route, broke, form), 429)
    off = stage.key({"usageLimitEnabled": False, "dailyUsageLimitUsd": 0})
    passed(ask(stage, route, off, form), route)
    for scope in (
        {"scopeType": "global"},
        {"scopeType": "model", "scopeValue": stage.lane(route).model},
        {"scopeType": "provider", "scopeValue": stage.lane(route).node["id"]},
    ):
        key = stage.gateway.create_key()
        body = {"apiKeyId": key["id"], "tokenLimit": 1, **scope}
        expect(stage.gateway.admin.post("/api/usage/token-limits", json=body), 201)
        refused(ask(stage, route, key["key"], form), 429)


@pytest.mark.parametrize(("route", "form"), cells(PAID))
def test_which_model_is_called_in_the_end(stage: Field, route: str, form: str) -> None:
    """`forcedModel` goes before `X-Route-Model`, and that before the body's; `autoResolve` finds a bare name."""
    header = {"X-Route-Model": f"{stage.lane(route).prefix}/routed"}
    passed(ask(stage, route, stage.gateway.key, form, headers=header), route)
    assert called(stage.asked(route)[-1]) == "routed"
    forced = stage.key({"forcedModel": f"{stage.lane(route).prefix}/forced"})
    passed(ask(stage, route, forced, form, headers=header), route)
    assert called(stage.asked(route)[-1]) == "forced"
    combo = stage.key({"forcedModel": f"combo/{stage.combo(route)}"})
    passed(ask(stage, route, combo, form), route)
    assert called(stage.asked(route)[-1]) == "m"


@pytest.mark.parametrize(("route", "form"), cells(RESOLVING))
def test_a_bare_name_is_looked_up_for_keys_that_have_it_so(
    stage: Field, route: str, form: str
) -> None:
    gateway, bare = stage.gateway, f"bare-{secrets.token_hex(4)}"
    path = f"/api/providers/{stage.lane(route).connections[0]['id']}"
    expect(gateway.admin.put(path, json={"defaultModel": bare}), 200)
    expect(gateway.admin.patch("/api/settings", json={"bareModels": "refuse"}), 200)
    refused(ask(stage, route, gateway.key, form, bare), 404)
    resolves = stage.key({"autoResolve": True})
    passed(ask(stage, route, resolves, form, bare), route)
    if not EXAMPLES[route].is_free:
        assert called(stage.asked(route)[-1]) == bare
    barred = gateway.create_key(autoResolve=True, blockedModels=[f"*/{bare}"])["key"]
    refused(ask(stage, route, barred, form, bare), 404)
    expect(gateway.admin.patch("/api/settings", json={"bareModels": "resolve"}), 200)


@pytest.mark.parametrize("mode", ["legacy", "json"])
@pytest.mark.parametrize("route", [route for route in PAID if EXAMPLES[route].is_talk])
def test_what_a_request_gets_that_does_not_say_stream(stage: Field, route: str, mode: str) -> None:
    """`streamDefaultMode`, by what the caller takes."""
    key = stage.gateway.create_key(streamDefaultMode=mode)["key"]
    seen = stage.lane(route).upstream.requests
    for accept, streams in (
        ("application/json", False),
        ("*/*", False),
        ("text/event-stream", True),
        ("application/json, text/event-stream", mode == "legacy"),
    ):
        before = len(seen)
        ask(stage, route, key, headers={"Accept": accept})
        # A provider may be asked for its models at any time, and a stream that it does not send is asked for elsewhere.
        call = next(each for each in seen[before:] if each.method == "POST")
        assert call.json().get("stream", False) is streams, accept


@pytest.mark.parametrize("scope", ["all", "combos", "models"])
def test_what_is_listed_says_nothing_of_what_may_be_called(stage: Field, scope: str) -> None:
    key = stage.gateway.create_key(catalogScope=scope)["key"]
    listed = {one["id"] for one in ask(stage, "GET /v1/models", key).json()["data"]}
    assert (stage.combos["openai"] in listed) is (scope != "models")
    for route in PAID:
        for model in (stage.lane(route).model, stage.combo(route)):
            passed(ask(stage, route, key, model=model), route)


@pytest.mark.parametrize("form", FORMS)
def test_money_holds_for_searches(stage: Field, form: str) -> None:
    """They name no model; what they cost at most is what a search provider says."""
    broke = stage.key({"usageLimitEnabled": True, "dailyUsageLimitUsd": 0})
    refused(ask(stage, "POST /v1/search", broke, form), 429)
    key = stage.gateway.create_key(rateLimits=[{"limit": 1, "window": 86_400}])["key"]
    passed(ask(stage, "POST /v1/search", key, form), "POST /v1/search")
    refused(ask(stage, "POST /v1/search", key, form), 429)
