"""Providers of each dialect that break, bend or end badly, before callers of each dialect.

One end, always, and never that of a whole answer for one that is not.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.dialects import DIALECTS
from tests.support.processes import Gateway
from tests.support.upstream import CLOSE, RESET, SSE_HEAD, Step, Upstream, chunk, head, reply


def sse(*payloads: dict[str, Any], named: bool = False) -> list[bytes]:
    """Events as a provider sends them."""
    events = []
    for payload in payloads:
        name = f"event: {payload['type']}\n".encode() if named else b""
        events.append(name + b"data: " + json.dumps(payload).encode() + b"\n\n")
    return events


def _openai() -> tuple[list[bytes], list[bytes]]:
    def piece(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {
            "id": "c",
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }

    said = sse(piece({"role": "assistant", "content": "one "}), piece({"content": "two"}))
    return said, [*sse(piece({}, "stop")), b"data: [DONE]\n\n"]


def _responses() -> tuple[list[bytes], list[bytes]]:
    response = {"id": "resp_1", "model": "m", "status": "in_progress", "output": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    delta = "response.output_text.delta"
    said = sse(
        {"type": "response.created", "sequence_number": 0, "response": response},
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": item,
        },
        {"type": delta, "sequence_number": 2, **at, "delta": "one "},
        {"type": delta, "sequence_number": 3, **at, "delta": "two"},
        named=True,
    )
    done = {**response, "status": "completed"}
    return said, sse(
        {"type": "response.completed", "sequence_number": 4, "response": done}, named=True
    )


def _anthropic() -> tuple[list[bytes], list[bytes]]:
    def delta(text: str) -> dict[str, Any]:
        return {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text},
        }

    block = {"type": "text", "text": ""}
    said = sse(
        {"type": "message_start", "message": {"id": "m1", "model": "m", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        delta("one "),
        delta("two"),
        named=True,
    )
    end = sse(
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
        named=True,
    )
    return said, end


def _gemini() -> tuple[list[bytes], list[bytes]]:
    def piece(text: str, **more: Any) -> dict[str, Any]:
        candidate = {"content": {"parts": [{"text": text}], "role": "model"}, **more}
        return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}

    return sse(piece("one "), piece("two")), sse(piece("", finishReason="STOP"))


UPSTREAMS: dict[str, Callable[[], tuple[list[bytes], list[bytes]]]] = {
    "openai": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}

ASKS: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "chat": lambda model: (
        "/v1/chat/completions",
        {"model": model, "stream": True, "messages": [{"role": "user", "content": "x"}]},
    ),
    "responses": lambda model: (
        "/v1/responses",
        {"model": model, "stream": True, "input": "x", "store": False},
    ),
    "messages": lambda model: (
        "/api/v1/messages",
        {
            "model": model,
            "stream": True,
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "x"}],
        },
    ),
    "gemini": lambda model: (
        f"/v1beta/models/{model}:streamGenerateContent?alt=sse",
        {"contents": [{"parts": [{"text": "x"}]}]},
    ),
}
WHOLE = {
    "chat": (b'"finish_reason":"stop"', b'"finish_reason": "stop"'),
    "responses": (b"event: response.completed",),
    "messages": (b"event: message_stop",),
    "gemini": (b'"finishReason":"STOP"', b'"finishReason": "STOP"'),
}
FAILED = {
    "chat": (b'data: {"error":',),
    "responses": (b"event: response.failed", b"event: error"),
    "messages": (b"event: error",),
    "gemini": (b'data: {"error":', b'data: {"error" :', b'data: {"error": '),
}


def count(body: bytes, marks: tuple[bytes, ...]) -> int:
    return sum(body.count(mark) for mark in set(marks))


def ask(gateway: Gateway, upstream: Upstream, dialect: str, caller: str, script: list[Step]) -> Any:
    """The whole stream, as bytes. Fails if its framing is broken."""
    prefix = f"faulty-{dialect}"
    if not hasattr(upstream, prefix):
        node = gateway.add_node(f"{prefix}-{id(upstream)}", upstream.url, dialect=dialect)
        gateway.add_connection(node["id"], f"sk-{prefix}-{id(upstream)}-canary")
        setattr(upstream, prefix, node["prefix"])
    upstream.script(script)
    path, body = ASKS[caller](f"{getattr(upstream, prefix)}/m")
    return gateway.caller.post(path, json=body)


@pytest.mark.parametrize("caller", ASKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_pair_ends_once(
    gateway: Gateway, upstream: Upstream, dialect: str, caller: str
) -> None:
    """S1-S5: whole, cut, reset, without an end, with a broken event, with data after the end."""
    said, end = UPSTREAMS[dialect]()
    last = b"0\r\n\r\n"
    whole = [SSE_HEAD, *map(chunk, said), *map(chunk, end), last]
    odd = b"".join([*said, *end]).replace(b"\n", b"\r\n")
    late = [SSE_HEAD, *map(chunk, said), *map(chunk, end), *map(chunk, end), last]
    for script in (whole, [SSE_HEAD, chunk(odd[:100]), chunk(odd[100:]), last]):
        body = ask(gateway, upstream, dialect, caller, script).content
        assert count(body, WHOLE[caller]) == 1, body
        assert count(body, FAILED[caller]) == 0, body
        assert b"one " in body
    if dialect != "gemini":
        body = ask(gateway, upstream, dialect, caller, late).content
        assert count(body, WHOLE[caller]) == 1, body
    broken: dict[str, list[Step]] = {
        "S1 closed": [SSE_HEAD, *map(chunk, said), CLOSE],
        "S2 reset": [SSE_HEAD, *map(chunk, said), RESET],
        "S3 cut line": [SSE_HEAD, *map(chunk, said), chunk(end[0][:20]), last],
        "S4 clean, without an end": [SSE_HEAD, *map(chunk, said), last],
        "S5 no object": [SSE_HEAD, *map(chunk, said), chunk(b"data: [1]\n\n"), last],
    }
    for name, script in broken.items():
        answer = ask(gateway, upstream, dialect, caller, script)
        body = answer.content
        assert count(body, WHOLE[caller]) == 0, (name, body)
        if answer.status_code == 200:
            assert count(body, FAILED[caller]) == 1, (name, body)
        else:
            # A reset may overtake what was sent before it.
            assert (name, answer.status_code) == ("S2 reset", 502)


@pytest.mark.parametrize("caller", ASKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_no_stream_is_a_failure(
    gateway: Gateway, upstream: Upstream, dialect: str, caller: str
) -> None:
    """S6: a page, an error under 200, a wrong type: 502 in the caller's shape, without the key."""
    html = head(200, [("Content-Type", "text/html"), ("Content-Length", "13")]) + b"<html></html>"
    error = reply({"error": {"message": "no sk-faulty-canary", "code": 500}})
    for script in ([html], error):
        answer = ask(gateway, upstream, dialect, caller, script)
        assert answer.status_code == 502, answer.content
        shape = answer.json()
        assert shape["error"]["message"]
        assert b"canary" not in answer.content
        if caller == "messages":
            assert shape["type"] == "error"
        if caller == "gemini":
            assert shape["error"]["status"] == "INTERNAL"


TOLD: dict[str, dict[str, Any]] = {
    "openai": {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "one two"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "one two", "annotations": []}],
            }
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    },
    "anthropic": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "one two"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    },
    "gemini": {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "one two"}]}, "finishReason": "STOP"}
        ],
        "modelVersion": "m",
        "responseId": "r",
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
    },
}
"""A complete answer of each dialect."""


@pytest.mark.parametrize("caller", ASKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_complete_answer_to_a_stream_is_streamed(
    gateway: Gateway, upstream: Upstream, dialect: str, caller: str
) -> None:
    """Some servers ignore `stream: true`."""
    answer = ask(gateway, upstream, dialect, caller, reply(TOLD[dialect]))
    assert answer.status_code == 200, answer.content
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert b"one two" in answer.content
    assert count(answer.content, WHOLE[caller]) == 1, answer.content
    assert count(answer.content, FAILED[caller]) == 0, answer.content


@pytest.mark.parametrize("caller", ASKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_to_a_complete_request_is_collected(
    gateway: Gateway, upstream: Upstream, dialect: str, caller: str
) -> None:
    """Some servers stream whatever was requested. A stream without its end is a failure."""
    node = gateway.add_node(f"unasked-{secrets.token_hex(4)}", upstream.url, dialect=dialect)
    gateway.add_connection(node["id"], f"sk-unasked-{secrets.token_hex(8)}")
    path, question = ASKS[caller](f"{node['prefix']}/m")
    question.pop("stream", None)
    path = path.replace(":streamGenerateContent?alt=sse", ":generateContent")
    said, end = UPSTREAMS[dialect]()
    if dialect == "openai-responses":
        end = sse({"type": "response.completed", "response": TOLD[dialect]}, named=True)
    upstream.script([SSE_HEAD, *map(chunk, said), *map(chunk, end), b"0\r\n\r\n"])
    answer = gateway.caller.post(path, json=question)
    assert answer.status_code == 200, answer.content
    assert answer.headers["content-type"] == "application/json"
    assert "one two" in json.dumps(answer.json())
    upstream.script([SSE_HEAD, *map(chunk, said), b"0\r\n\r\n"])
    answer = gateway.caller.post(path, json=question)
    assert answer.status_code == 502, answer.content


def _chat(message: str) -> bytes:
    choice = f'{{"index":0,"message":{message},"finish_reason":"stop"}}'
    return f'{{"id":"c","model":"m","choices":[{choice}]}}'.encode()


ODD: dict[str, tuple[str, bytes]] = {
    "half of a pair": ("openai", _chat(r'{"content":"one two\ud83d"}')),
    "half of a pair, of messages": (
        "anthropic",
        rb'{"id":"m","content":[{"type":"text","text":"one two\ud83d"}],"stop_reason":"end_turn"}',
    ),
    "half of a pair, of Gemini": (
        "gemini",
        rb'{"candidates":[{"content":{"parts":[{"text":"one two\ud83d"}]},"finishReason":"STOP"}]}',
    ),
    "a content of parts": (
        "openai",
        _chat('{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"one two"}]}'),
    ),
    "a member twice": ("openai", _chat('{"content":"no","content":"one two"}')),
    "arguments that are an object": (
        "openai",
        _chat('{"content":"one two","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}'),
    ),
    "a block that nobody knows": (
        "anthropic",
        b'{"content":[{"type":"new"},{"type":"text","text":"one two"}],"stop_reason":"end_turn"}',
    ),
}


@pytest.mark.parametrize("caller", ASKS)
@pytest.mark.parametrize("name", ODD)
def test_an_odd_answer_is_an_answer(
    gateway: Gateway, upstream: Upstream, name: str, caller: str
) -> None:
    """A whole answer that is not quite as its protocol says reaches callers of every dialect."""
    dialect, body = ODD[name]
    node = gateway.add_node(f"odd-{secrets.token_hex(4)}", upstream.url, dialect=dialect)
    gateway.add_connection(node["id"], f"sk-odd-{secrets.token_hex(8)}")
    upstream.script(reply(body))
    path, question = ASKS[caller](f"{node['prefix']}/m")
    question.pop("stream", None)
    path = path.replace(":streamGenerateContent?alt=sse", ":generateContent")
    answer = gateway.caller.post(path, json=question)
    assert answer.status_code == 200, answer.content
    assert "one two" in json.dumps(answer.json())


def test_what_another_dialect_would_refuse_is_sent_so_that_it_does_not(
    gateway: Gateway, upstream: Upstream
) -> None:
    """The provider gets a turn; a picture in the body gets there as one, in capitals too."""
    node = gateway.add_node(f"alone-{id(upstream)}", upstream.url, dialect="anthropic")
    gateway.add_connection(node["id"], f"sk-alone-{id(upstream)}")
    message = {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
    upstream.script(reply(message))
    image = {"type": "image_url", "image_url": {"url": "DATA:IMAGE/PNG;base64,iVBORw0KGgo"}}
    for turn in (
        {"role": "system", "content": "Say hi."},
        {"role": "user", "content": [image]},
    ):
        body = {"model": f"{node['prefix']}/m", "messages": [turn]}
        answer = gateway.caller.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.content
    first, second = (request.json() for request in upstream.requests[-2:])
    assert first["messages"] == [{"role": "user", "content": "Say hi."}]
    assert "system" not in first
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo"}
    assert second["messages"][0]["content"] == [{"type": "image", "source": source}]
