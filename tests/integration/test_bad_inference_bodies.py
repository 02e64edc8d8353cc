"""Every route for clients of models refuses a body that is none, in its dialect's one shape, and asks no provider.

The routes come from the gateway's table, so that one that is added later is tried too.
"""

from __future__ import annotations

import json
from typing import Any, Final

import httpx
import pytest

from tests.support.inference import EXAMPLES, inference_routes
from tests.support.processes import Gateway
from tests.support.upstream import Upstream, reply

# What is no JSON object, and objects that are too deep or say no model.
NOT_BODIES: Final = {
    "empty": b"",
    "not JSON": b"{",
    "a word": b"hello",
    "null": b"null",
    "list": b"[]",
    "number": b"5",
    "text": b'"text"',
    "not UTF-8": b'{"model": "\xff\xfe"}',
    "NaN": b'{"model": NaN}',
    "deep": b'{"model": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "deep beside": b'{"messages": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "long beside": b'{"messages": "' + b"x" * 300_000 + b'"}',
    "less deep beside": b'{"messages": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
    "trailing": b'{"model": "a/b"} {"model": "a/b"}',
}
# Values that a field does not want; a field that means nothing here is the provider's to judge.
WRONG: Final = (5, -1, 2**70, 1.5, True, None, "", {"a": [None]}, [[]], [5, None], "\u202e\u0000")
LONG: Final = "x" * 1_000_000
WITH_BODY: Final = [
    route for route in inference_routes() if route in EXAMPLES and EXAMPLES[route].body
]
# The short form tries those whose bodies are read by code of their own.
SHORT: Final = {
    "POST /v1/chat/completions",
    "POST /v1/messages",
    "POST /v1/responses",
    "POST /v1/embeddings",
    "POST /v1/classify",
    "POST /v1/web/fetch",
    "POST /v1/session-leases",
    "POST /v1/music/generations",
    "POST /ollama/api/chat",
}
# A node refuses a large body here before it has read it.
REFUSED_UNREAD: Final = "POST /v1/session-leases"


def _marks(route: str, *also_short: str) -> list[pytest.MarkDecorator]:
    marks = [] if route in SHORT or route in also_short else [pytest.mark.slow]
    if route == REFUSED_UNREAD:
        why = "the balancer may end a connection over which a body comes before its refusal is read"
        marks.append(pytest.mark.one_node(reason=why))
    return marks


ROUTES: Final = [pytest.param(route, marks=_marks(route)) for route in WITH_BODY]
# Further members of this one are not the relay's to pass, but control's.
TYPED: Final = [pytest.param(route, marks=_marks(route, "POST /v1/videos")) for route in WITH_BODY]


def _send(gateway: Gateway, route: str, body: bytes) -> Any:
    method, path = route.split(" ", 1)
    path = (EXAMPLES[route].path or path).replace("{model}", "none/m")
    headers = {"content-type": "application/json"}
    return gateway.caller.request(method, path, content=body, headers=headers)


def _fault(answer: Any) -> str | None:
    """Why this is no refusal in a dialect's shape; `None` for one, and for an answer that is none."""
    if answer.status_code >= 500 and answer.status_code not in (502, 503):
        return f"status {answer.status_code}"
    if answer.status_code < 400:
        return None
    try:
        error = json.loads(answer.text)["error"]
    except (ValueError, KeyError, TypeError):
        return f"no error in a known shape: {answer.text[:100]}"
    message = error if isinstance(error, str) else error.get("message")
    return None if isinstance(message, str) and message else "an error without a message"


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_no_body_is_refused_and_nobody_is_asked(
    gateway: Gateway, upstream: Upstream, route: str
) -> None:
    gateway.add_lane(upstream)
    faults = {}
    for name, body in NOT_BODIES.items():
        try:
            answer = _send(gateway, route, body)
        except httpx.TransportError as lost:
            faults[name] = f"no answer: {lost}"
            continue
        why = _fault(answer)
        if why is None and not 400 <= answer.status_code < 500:
            why = f"status {answer.status_code}"
        if why is not None:
            faults[name] = f"{why}: {answer.text[:100]}"
    assert faults == {}
    assert upstream.requests == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("route", TYPED)
def test_a_field_of_another_type_never_breaks_the_gateway(
    gateway: Gateway, upstream: Upstream, route: str
) -> None:
    lane = gateway.add_lane(upstream)
    make = EXAMPLES[route].body
    assert make is not None
    good = make(lane.model)
    faults = {}
    for name in [*good, "noSuchField"]:
        for value in (*WRONG, LONG):
            answer = _send(gateway, route, json.dumps({**good, name: value}).encode())
            if (why := _fault(answer)) is not None:
                faults[f"{name}={str(value)[:20]}"] = f"{why}: {answer.text[:100]}"
    assert faults == {}
    assert gateway.caller.get("/v1/models").status_code == 200


@pytest.mark.parametrize(
    ("name", "value"), [("tool_choice", 5), ("tools", "all"), ("temperature", [])]
)
def test_what_the_relay_does_not_read_is_the_providers_to_refuse(
    gateway: Gateway, upstream: Upstream, name: str, value: Any
) -> None:
    """Between two ends of one dialect it passes as it came; a translation has to read it, and says what is wrong."""
    refusal = {"message": "not that", "type": "invalid_request_error", "param": name, "code": None}
    same, other = gateway.add_lane(upstream), gateway.add_lane(upstream, dialect="anthropic")
    upstream.script(reply({"error": refusal}, status=400))
    path = "/v1/chat/completions"
    passed = gateway.caller.post(path, json=same.body(**{name: value}))
    assert passed.status_code == 400
    assert passed.json()["error"] == refusal
    assert [seen.json()[name] for seen in upstream.requests] == [value]
    read = gateway.caller.post(path, json=other.body(**{name: value}))
    assert read.status_code == 400
    assert read.json()["error"]["code"] == "invalid_request"
    assert read.json()["error"]["param"] == name
    assert len(upstream.requests) == 1, "nobody was asked"
