"""The main job: a chat completion goes through, plain and streamed, and says what it was and what it cost."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.chat import CHAT, ask, send_chat
from tests.support.processes import Gateway, Lane, expect
from tests.support.raw import RawClient
from tests.support.upstream import (
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    Gate,
    Upstream,
    chunk,
    completion,
    delta,
    event,
    finish,
    reply,
    stream,
    usage,
    usage_event,
)

pytestmark = pytest.mark.both_fronts

HEADERS_AT_END = {
    "x-gateway-tokens-in": r"7",
    "x-gateway-tokens-out": r"3",
    "x-gateway-response-cost": r"\d+\.\d{10}",
    "x-gateway-response-latency": r"\d+(\.\d+)?( ?ms)?",
}
HEADERS_AT_START = {
    "x-gateway-version": r"\d+\.\d+\.\d+.*",
    "x-gateway-request-id": r"\S+",
    "x-gateway-decision": r"strategy=single; provider=\S+; latency_ms=\d+(\.\d+)?",
    "x-gateway-provider": r"\S+",
    "x-gateway-model": r"\S+",
    "x-gateway-latency-ms": r"\d+(\.\d+)?",
}


def test_a_plain_answer_passes_byte_for_byte(gateway: Gateway, lane: Lane) -> None:
    """What the provider says is what the caller gets: body, type, status."""
    used = b'"usage":{"prompt_tokens":7,"completion_tokens":3}'
    odd = (
        b'{ "choices" : [{"message":{"content":"\\u00e9\xc3\xa9"}}],\n "x_more": [1.50, 1e2], '
        + used
        + b" } "
    )
    lane.upstream.script(reply(odd, content_type="application/json; charset=utf-8"))
    answer = gateway.caller.post(CHAT, json=lane.body())
    assert answer.status_code == 200
    assert answer.content == odd
    assert answer.headers["content-type"].startswith("application/json")


def test_a_plain_answer_carries_what_it_was_and_cost(gateway: Gateway, lane: Lane) -> None:
    """Every telemetry header of a completion stands there once, well formed."""
    answer = ask(lane)
    assert answer.status == 200
    for name, pattern in (HEADERS_AT_START | HEADERS_AT_END).items():
        value = answer.header(name)
        assert value is not None, f"{name} is missing"
        assert re.fullmatch(pattern, value), f"{name}: {value}"
    decision = answer.header("x-gateway-decision") or ""
    assert f"provider={answer.header('x-gateway-provider')};" in decision


def test_a_session_tag_comes_back_and_is_never_made_up(gateway: Gateway, lane: Lane) -> None:
    """X-Gateway-Session-Id is stored as sent and echoed; without it there is none."""
    tagged = gateway.caller.post(
        CHAT, json=lane.body(), headers={"X-Gateway-Session-Id": "Tag 1/a"}
    )
    assert tagged.headers["x-gateway-session-id"] == "Tag 1/a"
    assert gateway.record(tagged.headers["x-gateway-request-id"])["sessionTag"] == "Tag 1/a"
    plain = gateway.caller.post(CHAT, json=lane.body())
    assert "x-gateway-session-id" not in plain.headers


def test_the_request_passes_byte_for_byte_but_for_the_model(gateway: Gateway, lane: Lane) -> None:
    """Odd spacing, escapes, number forms and unknown members reach the provider as they were sent."""
    content = b'"\\u0041 \xf0\x9f\x8c\x8a \\/"'
    before = (
        b'{"temperature": 1.50,\r\n\t"messages":[{"role":"user","content":'
        + content
        + b'}], "model" : '
    )
    after = b' ,"seed":12345678901234567890123,"x":{"model":"untouched/model","n":1E+2} , "stream":false }\n'
    body = before + json.dumps(lane.model).encode() + after
    answer = gateway.caller.post(CHAT, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert lane.upstream.last.body == before + b'"m"' + after
    assert lane.upstream.last.target == "/v1/chat/completions"


def test_a_model_may_have_slashes_behind_its_prefix(gateway: Gateway, lane: Lane) -> None:
    """Only the first slash separates: the rest is the provider's own name."""
    answer = gateway.caller.post(CHAT, json=lane.body(model=f"{lane.prefix}/meta/llama-3:free"))
    assert answer.status_code == 200, answer.text
    assert lane.upstream.last.json()["model"] == "meta/llama-3:free"


def test_a_stream_passes_byte_for_byte(gateway: Gateway, lane: Lane) -> None:
    """Events reach the caller as the provider wrote them; what is known at the start stands in the headers."""
    events = [
        delta("Grüße "),
        b": a comment\n\n",
        b"event: message\nid: 7\n" + delta("🌊"),
        finish(),
    ]
    lane.upstream.script(stream(*events, DONE))
    answer = ask(lane, stream=True)
    assert answer.status == 200
    assert (answer.header("content-type") or "").startswith("text/event-stream")
    assert answer.body == b"".join(events) + DONE
    for name, pattern in HEADERS_AT_START.items():
        assert re.fullmatch(pattern, answer.header(name) or ""), f"{name}: {answer.header(name)}"


def test_a_stream_is_not_held_back(gateway: Gateway, lane: Lane) -> None:
    """Each event is with the caller before the provider sends the next one."""
    gates = [Gate(), Gate()]
    lane.upstream.script(
        [
            SSE_HEAD,
            chunk(delta("a")),
            gates[0],
            chunk(delta("b")),
            gates[1],
            chunk(finish() + DONE),
            LAST_CHUNK,
        ]
    )
    with RawClient(gateway.port) as client:
        send_chat(client, lane, stream=True)
        client.head()
        assert client.body_until(delta("a")) == delta("a")
        gates[0].open()
        assert client.body_until(delta("b")) == delta("b")
        gates[1].open()
        assert client.body_until(DONE) == finish() + DONE


def test_usage_is_asked_for_and_removed_again(gateway: Gateway, lane: Lane) -> None:
    """A caller that did not ask for usage does not see the chunk, but the request is accounted by it."""
    lane.upstream.script(stream(delta("a"), finish(), usage_event(11, 5), DONE))
    body = (
        b'{"model":"%s","stream":true, "messages":[{"role":"user","content":"hi"}] }'
        % lane.model.encode()
    )
    answer = gateway.caller.post(CHAT, content=body, headers={"Content-Type": "application/json"})
    assert answer.content == delta("a") + finish() + DONE
    asked = lane.upstream.last.body
    assert json.loads(asked)["stream_options"] == {"include_usage": True}
    without = re.sub(rb',\s*"stream_options":\s*\{"include_usage":\s*true\}', b"", asked)
    assert without == body.replace(lane.model.encode(), b"m")
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["tokensInput"], record["tokensOutput"]) == (11, 5)


def test_usage_stays_when_it_was_asked_for(gateway: Gateway, lane: Lane) -> None:
    """A caller that asked for usage gets the chunk, and its own options reach the provider untouched."""
    events = [delta("a"), finish(), usage_event(11, 5), DONE]
    lane.upstream.script(stream(*events))
    options = {"include_usage": True, "other": 1}
    answer = gateway.caller.post(CHAT, json=lane.body(stream=True, stream_options=options))
    assert answer.content == b"".join(events)
    assert lane.upstream.last.json()["stream_options"] == options


def test_other_stream_options_survive(gateway: Gateway, lane: Lane) -> None:
    """`include_usage: false` becomes true upstream, every other option stays, and the chunk is removed."""
    lane.upstream.script(stream(delta("a"), finish(), usage_event(), DONE))
    answer = gateway.caller.post(
        CHAT, json=lane.body(stream=True, stream_options={"include_usage": False, "other": 1})
    )
    assert answer.content == delta("a") + finish() + DONE
    assert lane.upstream.last.json()["stream_options"] == {"include_usage": True, "other": 1}


def test_usage_beside_choices_is_never_removed(gateway: Gateway, lane: Lane) -> None:
    """Some providers report usage on the last content chunk: that is content, and it is counted."""
    last = event(
        {
            "id": "c",
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": usage(9, 2),
        }
    )
    lane.upstream.script(stream(delta("a"), last, DONE))
    answer = gateway.caller.post(CHAT, json=lane.body(stream=True))
    assert answer.content == delta("a") + last + DONE
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["tokensInput"], record["tokensOutput"]) == (9, 2)


PRIVATE_HEADERS = [
    ("X-Gateway-No-Cache", "true"),
    ("X-Gateway-Session-Id", "private-tag"),
    ("X-Fairlead-Principal", '{"kind":"local"}'),
    ("X-Forwarded-For", "private-address"),
    ("X-Forwarded-Host", "private-host"),
    ("Forwarded", "for=private-address"),
    ("Cookie", "a=private-cookie"),
    ("x_session_id", "private-session"),
    ("x_custom_header", "private-underscore"),
    ("Proxy-Authorization", "Basic private-proxy"),
    ("Connection", "keep-alive, x-listed"),
    ("X-Listed", "private-listed"),
    ("Origin", "https://private-origin"),
    ("Referer", "https://private-referer"),
    ("User-Agent", "private-agent"),
    ("TE", "trailers"),
]


def test_what_belongs_to_the_caller_never_reaches_the_provider(
    gateway: Gateway, lane: Lane
) -> None:
    """Credentials, cookies, forwarding, hop-by-hop and underscore headers stay here; the provider sees its own key."""
    with RawClient(gateway.port) as client:
        headers = [gateway.auth, ("x-api-key", gateway.key), *PRIVATE_HEADERS]
        client.request("POST", CHAT, headers, json.dumps(lane.body()).encode())
        assert client.response().status == 200
    seen = lane.upstream.last
    assert seen.header("authorization") == f"Bearer {lane.secrets[0]}"
    assert seen.header("host") == f"127.0.0.1:{lane.upstream.port}"
    names = {name.lower() for name, _ in seen.headers}
    forbidden = {name.lower() for name, _ in PRIVATE_HEADERS} - {"connection", "user-agent"} | {
        "x-api-key"
    }
    assert not names & forbidden
    assert not [
        name
        for name in names
        if name.startswith(("x-gateway", "x-forwarded", "x-fairlead")) or "_" in name
    ]
    everything = lane.upstream.bytes_seen()
    assert b"private-" not in everything
    assert gateway.key.encode() not in everything


def test_what_belongs_to_the_provider_never_reaches_the_caller(
    gateway: Gateway, lane: Lane
) -> None:
    """A provider can neither set cookies on the gateway's origin nor speak in the gateway's name."""
    headers = [
        ("Set-Cookie", "auth_token=planted"),
        ("X-Gateway-Version", "planted"),
        ("X-Gateway-Tokens-In", "planted"),
        ("X-Fairlead-Link", "planted"),
        ("Access-Control-Allow-Origin", "https://planted"),
        ("Strict-Transport-Security", "max-age=1; planted"),
        ("Connection", "keep-alive, x-hop"),
        ("X-Hop", "planted"),
    ]
    lane.upstream.script(reply(completion(), headers=headers))
    answer = ask(lane)
    assert answer.status == 200
    assert "planted" not in str(answer.headers)


@pytest.mark.one_node(reason="each worker has connections of its own to providers")
def test_a_connection_is_kept_on_both_sides(gateway: Gateway, lane: Lane) -> None:
    """Plain and streamed answers alike leave caller's and provider's connection open for the next request."""
    # The body's end comes with the last event: a caller may ask again before an end that comes later.
    told = [SSE_HEAD, chunk(delta("a")), chunk(finish() + DONE) + LAST_CHUNK]
    with RawClient(gateway.port) as client:
        for turn in range(6):
            lane.upstream.script(told if turn % 2 else reply(completion()))
            send_chat(client, lane, stream=bool(turn % 2))
            assert client.response().status == 200
    assert len(lane.upstream.requests) == 6
    assert lane.upstream.connections == 1


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_the_cost_is_what_the_prices_say(
    gateway: Gateway, upstream: Upstream, streamed: bool
) -> None:
    """USD per million tokens, cached input at its own price: ten decimals in the header, micro-dollars on record."""
    prices = {"m": {"input": 2.5, "output": 10, "cachedInput": 1.25}}
    node = gateway.add_node(f"priced-{streamed}".lower(), upstream.url)
    gateway.add_connection(
        node["id"], "sk-upstream-canary-priced", providerSpecificData={"prices": prices}
    )
    counted = usage(1000, 300) | {"prompt_tokens_details": {"cached_tokens": 400}}
    last = event({"id": "c", "choices": [], "usage": counted})
    upstream.script(
        stream(delta("a"), finish(), last, DONE)
        if streamed
        else reply(completion() | {"usage": counted})
    )
    answer = gateway.caller.post(
        CHAT, json=Lane(gateway, upstream, node["prefix"], node).body(stream=streamed)
    )
    assert answer.status_code == 200
    cost_usd_micros = 600 * 2.5 + 400 * 1.25 + 300 * 10
    if not streamed:
        assert answer.headers["x-gateway-response-cost"] == f"{cost_usd_micros / 1e6:.10f}"
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert record["costUsdMicros"] == cost_usd_micros
    assert (record["tokensInput"], record["tokensCached"], record["tokensOutput"]) == (
        1000,
        400,
        300,
    )


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_a_request_becomes_one_record(gateway: Gateway, lane: Lane, streamed: bool) -> None:
    """What was served is on record once, with who, what, through which connection, and how it went."""
    if streamed:
        lane.upstream.script(stream(delta("hello"), finish(), usage_event(), DONE))
    key = gateway.create_key(name="recorded")
    answer = gateway.client().post(
        CHAT, json=lane.body(stream=streamed), headers={"Authorization": f"Bearer {key['key']}"}
    )
    assert answer.status_code == 200
    record = gateway.shown_record(answer.headers["x-gateway-request-id"])
    expected = {
        "keyId": key["id"],
        "principalKind": "key",
        "endpoint": "chat",
        "model": lane.model,
        "upstreamModel": "m",
        "connectionId": lane.connections[0]["id"],
        "stream": streamed,
        "status": 200,
        "outcome": "completed",
        "errorKind": None,
        "tokensInput": 7,
        "tokensOutput": 3,
        "attempts": 1,
    }
    assert {name: record[name] for name in expected} == expected
    assert record["latencyMs"] > 0


def test_models_have_a_tag_and_are_not_sent_twice(gateway: Gateway, lane: Lane) -> None:
    """`GET /v1/models` is a list with an ETag; asked again with it, the answer is 304 without a body."""
    first = gateway.caller.get("/v1/models")
    listing = expect(first, 200)
    assert listing["object"] == "list"
    assert all({"id", "object", "created", "owned_by"} <= model.keys() for model in listing["data"])
    again = gateway.caller.get("/v1/models", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    page = gateway.caller.get("/v1/models", params={"limit": 1})
    assert page.headers["etag"] != first.headers["etag"]
    found = expect(page, 200)
    assert (found["data"], found["has_more"]) == (listing["data"][:1], len(listing["data"]) > 1)
    follows = {"limit": 1000, "after": found["last_id"]}
    assert (
        expect(gateway.caller.get("/v1/models", params=follows), 200)["data"]
        == (listing["data"][1:1001])
    )
    tag = {"If-None-Match": page.headers["etag"]}
    assert gateway.caller.get("/v1/models", params={"limit": 1}, headers=tag).status_code == 304
    refused = gateway.caller.get("/v1/models", params={"limit": 0})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "limit")
    with RawClient(gateway.port) as client:
        client.request("HEAD", "/v1/models", [gateway.auth])
        answer = client.response(bodyless=True)
        assert answer.status == 200
        client.request("GET", "/healthz")
        assert client.response().json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("model", "status", "code"),
    (
        ("no-such-prefix/m", 404, "model_not_found"),
        ("bare-name", 404, "model_not_found"),
        ("/m", 404, "model_not_found"),
        ("", 400, "invalid_request"),
        (None, 400, "invalid_request"),
        (7, 400, "invalid_request"),
    ),
)
def test_a_model_that_is_not_there_is_refused(
    gateway: Gateway, model: object, status: int, code: str
) -> None:
    """The refusal is OpenAI's shape, names the field and has the request's id."""
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    answer = gateway.caller.post(
        CHAT, json={name: value for name, value in body.items() if value is not None}
    )
    error = expect(answer, status)["error"]
    assert (error["code"], error["param"], error["type"]) == (
        code,
        "model",
        "invalid_request_error",
    )
    assert answer.headers["x-gateway-request-id"]
