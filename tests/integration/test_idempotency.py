"""A request that is sent twice under one key is done once: joined while under way, repeated for five seconds after."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.upstream import (
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    Gate,
    chunk,
    completion,
    delta,
    finish,
    reply,
)

REPEATS = 12


def call(
    gateway: Gateway, lane: Lane, key: str, headers: dict[str, str] | None = None, **fields: Any
) -> httpx.Response:
    sent = {"Idempotency-Key": key, **(headers or {})}
    return gateway.caller.post(CHAT, json=lane.body(**fields), headers=sent)


@pytest.mark.parametrize(
    "header",
    [
        "Idempotency-Key",
        pytest.param(
            "X-Request-Id",
            marks=pytest.mark.one_node(reason="an X-Request-Id counts at its worker only"),
        ),
    ],
)
def test_a_repeated_request_is_answered_from_the_first(
    gateway: Gateway, lane: Lane, header: str
) -> None:
    lane.upstream.script(reply(completion("first")), reply(completion("second")))
    first, again = (
        gateway.caller.post(CHAT, json=lane.body(), headers={header: f"k1-{header}"})
        for _ in range(2)
    )
    assert first.json() == again.json()
    assert len(lane.upstream.requests) == 1
    assert "x-gateway-idempotent" not in first.headers
    assert again.headers["x-gateway-idempotent"] == "true"
    ids = [answer.headers["x-gateway-request-id"] for answer in (first, again)]
    assert ids[0] != ids[1]
    records = [gateway.record(one) for one in ids]
    assert [one["outcome"] for one in records] == ["completed", "completed"]
    assert [one["attempts"] for one in records] == [1, 0]
    assert [one["tokensOutput"] for one in records] == [3, 0], "it is paid once"


def test_another_request_under_the_same_key_is_a_conflict(gateway: Gateway, lane: Lane) -> None:
    assert call(gateway, lane, "k2").status_code == 200
    refused = call(gateway, lane, "k2", temperature=0.5)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "conflict"
    assert refused.json()["error"]["param"] == "Idempotency-Key"
    other = {"Authorization": f"Bearer {gateway.create_key()['key']}"}
    assert call(gateway, lane, "k2", other, temperature=0.5).status_code == 200, "another caller"
    assert call(gateway, lane, "k2b", temperature=0.5).status_code == 200


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "embeddings"])
def test_another_request_under_a_shared_request_id_is_another_request(
    gateway: Gateway, lane: Lane, dialect: str
) -> None:
    """Proxies give one id to all requests that one page makes."""
    vector = {"data": [{"embedding": [0.5], "index": 0, "object": "embedding"}], "object": "list"}
    lane.upstream.script(reply(vector if dialect == "embeddings" else completion()))
    path, body = {
        "chat": (CHAT, lane.body()),
        "responses": ("/v1/responses", {"model": lane.model, "input": "hi", "store": False}),
        "messages": ("/v1/messages", {**lane.body(), "max_tokens": 5}),
        "embeddings": ("/v1/embeddings", {"model": lane.model, "input": "hi"}),
    }[dialect]
    shared = {"X-Request-Id": f"page-{dialect}"}

    def ask(user: str) -> httpx.Response:
        named = {"metadata": {"user_id": user}} if dialect == "messages" else {"user": user}
        return gateway.caller.post(path, json={**body, **named}, headers=shared)

    answers = [ask("a"), ask("b"), ask("c")]
    assert [answer.status_code for answer in answers] == [200] * 3, answers[1].text
    assert not any("x-gateway-idempotent" in answer.headers for answer in answers)
    assert len(lane.upstream.requests) == 3
    with ThreadPoolExecutor(2) as pool:
        assert {each.status_code for each in pool.map(ask, ["d", "e"])} == {200}


def test_a_request_id_and_a_key_of_the_same_text_are_two(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(completion()))
    assert call(gateway, lane, "k7").status_code == 200
    named = {"X-Request-Id": "k7"}
    assert gateway.caller.post(CHAT, json=lane.body(n=1), headers=named).status_code == 200
    assert call(gateway, lane, "k7", n=1).status_code == 409, "the key still stands for one body"


def test_equal_requests_join_the_call_under_way(gateway: Gateway, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script([gate, *reply(completion("once"))])
    with ThreadPoolExecutor(REPEATS) as pool:
        answers = [pool.submit(call, gateway, lane, "k3") for _ in range(REPEATS)]
        eventually(lambda: lane.upstream.requests, "the call is under way", within_s=5)
        gate.open()
        done = [answer.result(20) for answer in answers]
    assert {answer.json()["choices"][0]["message"]["content"] for answer in done} == {"once"}
    marked = Counter(answer.headers.get("x-gateway-idempotent") for answer in done)
    assert marked == {None: 1, "true": REPEATS - 1}
    assert len(lane.upstream.requests) == 1


@pytest.mark.one_node(
    reason="a stream is joined in its middle at its own worker; another gives it whole when it has ended"
)
def test_a_stream_is_joined_in_its_middle_and_outlives_its_first_caller(
    gateway: Gateway, lane: Lane
) -> None:
    gate = Gate()
    whole = [delta("a"), delta("b"), finish(), DONE]
    begin, rest = whole[:1], whole[1:]
    lane.upstream.script([SSE_HEAD, *map(chunk, begin), gate, *map(chunk, rest), LAST_CHUNK])
    body = lane.body(stream=True, stream_options={"include_usage": True})
    headers = {"Idempotency-Key": "k4"}
    with ThreadPoolExecutor(1) as pool:
        with gateway.caller.stream("POST", CHAT, json=body, headers=headers) as first:
            # Kept: an iterator that is dropped closes its answer.
            pieces = first.iter_bytes()
            assert next(pieces) == begin[0]
            follower = pool.submit(
                gateway.client().post, CHAT, json=body, headers=dict([gateway.auth]) | headers
            )
            with gateway.caller.stream("POST", CHAT, json=body, headers=headers) as second:
                more = second.iter_bytes()
                assert next(more) == begin[0], "what was missed comes first"
        gate.open()
        answer = follower.result(20)
    assert answer.content == b"".join(whole)
    assert len(lane.upstream.requests) == 1
    assert not lane.upstream.last.aborted


def test_a_failure_is_not_repeated(gateway: Gateway, lane: Lane) -> None:
    bad = {"error": {"message": "bad", "type": "invalid_request_error"}}
    lane.upstream.script(reply(bad, 400), reply(completion("good")))
    assert call(gateway, lane, "k5").status_code == 400
    again = call(gateway, lane, "k5")
    assert again.status_code == 200
    assert "x-gateway-idempotent" not in again.headers
    assert len(lane.upstream.requests) == 2


def test_when_all_callers_leave_the_call_is_stopped(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script([SSE_HEAD, chunk(delta("a")), Gate()])
    headers = {"Idempotency-Key": "k6"}
    with gateway.caller.stream("POST", CHAT, json=lane.body(stream=True), headers=headers) as one:
        next(one.iter_bytes())
    eventually(lambda: lane.upstream.last.aborted, "the provider is let go", within_s=3)
    records = eventually(lambda: gateway.records_of(lane), "it is settled", within_s=8)
    assert [one["outcome"] for one in records] == ["client_gone"]


FORMS: dict[str, tuple[str, str, Any]] = {
    "/v1/audio/transcriptions": ("file", "rec.mp3", {"text": "words"}),
    "/v1/audio/translations": ("file", "rec.mp3", {"text": "words"}),
    "/v1/images/edits": ("image", "a.png", {"created": 1, "data": [{"url": "u"}]}),
}


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("size", [100, 200_000], ids=["in memory", "on disk"])
def test_a_form_that_is_sent_twice_is_done_once(
    gateway: Gateway, lane: Lane, path: str, size: int
) -> None:
    """The same parts, whatever the boundary between them; another content, name or field is another request."""
    part, name, answer = FORMS[path]
    lane.upstream.script(reply(answer), reply({"error": {"message": "asked twice"}}, 500))
    key = f"form-{path}-{size}"

    def send(content: bytes, name: str = name, boundary: str | None = None, **more: str) -> Any:
        headers = {"Idempotency-Key": key}
        if boundary:
            headers["Content-Type"] = f"multipart/form-data; boundary={boundary}"
        fields = {"model": lane.model, "prompt": "p", **more}
        return gateway.caller.post(
            path, data=fields, files={part: (name, content)}, headers=headers
        )

    first, again = send(b"x" * size, boundary="one"), send(b"x" * size, boundary="two")
    assert first.status_code == 200, first.text
    assert first.json() == again.json() == answer
    assert again.headers["x-gateway-idempotent"] == "true"
    assert len(lane.upstream.requests) == 1
    record = gateway.record(again.headers["x-gateway-request-id"])
    assert (record["outcome"], record["attempts"], record["model"]) == ("completed", 0, lane.model)
    for other in (
        send(b"y" * size),
        send(b"x" * size, name=f"b{name}"),
        send(b"x" * size, language="de"),
    ):
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
    assert len(lane.upstream.requests) == 1


def test_forms_that_come_at_once_are_done_once(gateway: Gateway, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script([gate, *reply({"text": "words"})])

    def send(_: int) -> httpx.Response:
        return gateway.caller.post(
            "/v1/audio/transcriptions",
            data={"model": lane.model},
            files={"file": ("a.mp3", b"sound")},
            headers={"Idempotency-Key": "forms-at-once"},
        )

    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(send, at) for at in range(6)]
        eventually(gate.reached.is_set, "the provider is asked")
        gate.open()
        answers = [one.result(30) for one in calls]
    assert [one.status_code for one in answers] == [200] * 6
    assert len(lane.upstream.requests) == 1
    assert sum(one.headers.get("x-gateway-idempotent") == "true" for one in answers) == 5
