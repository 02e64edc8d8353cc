"""What goes wrong beside chat: failover before the first byte, and an end that cannot be mistaken after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.processes import Gateway
from tests.support.raw import RawClient, request_bytes
from tests.support.upstream import (
    CLOSE,
    LAST_CHUNK,
    RESET,
    SSE_HEAD,
    Gate,
    Script,
    Upstream,
    chunk,
    event,
    head,
    reply,
)

EMBEDDINGS: dict[str, Any] = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 4, "total_tokens": 4},
}
AUDIO = head(200, [("Content-Type", "audio/mpeg"), ("Transfer-Encoding", "chunked")])


def embed(gateway: Gateway, model: str) -> httpx.Response:
    return gateway.caller.post("/v1/embeddings", json={"model": model, "input": "x"})


def speak(gateway: Gateway, model: str) -> tuple[int, bytes, httpx.Headers]:
    asked = {"model": model, "input": "x", "voice": "v"}
    with gateway.caller.stream("POST", "/v1/audio/speech", json=asked) as answer:
        return answer.status_code, b"".join(answer.iter_bytes()), answer.headers


FAULTS: dict[str, Script] = {
    "a failure": reply({"error": {"message": "no"}}, 500),
    "a limit": reply({"error": {"message": "no"}}, 429),
    "HTML": reply(b"<html></html>", content_type="text/html"),
    "an error under 200": reply({"error": {"message": "no"}}),
    "no data": reply({"object": "list"}),
    "half a body": [
        head(200, [("Content-Type", "application/json"), ("Content-Length", "99")]) + b"{",
        CLOSE,
    ],
}


@pytest.mark.parametrize("script", FAULTS.values(), ids=FAULTS.keys())
def test_the_next_connection_answers(gateway: Gateway, upstream: Upstream, script: Script) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    upstream.script(script, reply(EMBEDDINGS))
    answer = embed(gateway, lane.model)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-gateway-fallback-attempts"] == "1"
    assert answer.json() == EMBEDDINGS
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["attempts"], record["tokensInput"], record["outcome"]) == (2, 4, "completed")
    assert len({seen.bearer for seen in upstream.requests}) == 2


def test_a_combo_goes_on_over_providers(gateway: Gateway, upstream: Upstream) -> None:
    first, second = gateway.add_lane(upstream), gateway.add_lane(upstream)
    combo = {"name": f"c-{first.prefix}", "models": [first.model, second.model]}
    assert gateway.admin.post("/api/combos", json=combo).status_code == 201
    upstream.script(reply({"error": {"message": "no"}}, 500), reply(EMBEDDINGS))
    answer = embed(gateway, combo["name"])
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-gateway-provider"] == second.prefix
    assert "strategy=priority" in answer.headers["x-gateway-decision"]


def test_a_rejection_is_the_callers(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    told = {"message": "too long", "type": "invalid_request_error", "param": "input", "code": None}
    upstream.script(reply({"error": told}, 400))
    answer = embed(gateway, lane.model)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input")
    assert len(upstream.requests) == 1


def test_another_dialect_has_no_embeddings(gateway: Gateway, upstream: Upstream) -> None:
    node = gateway.add_node(f"an{id(upstream):x}", upstream.url, dialect="anthropic")
    gateway.add_connection(node["id"], "sk-upstream-canary-anthropic")
    answer = embed(gateway, f"{node['prefix']}/m")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "model")
    assert "embeddings" in answer.json()["error"]["message"]
    assert not upstream.requests


def test_sound_that_breaks_is_not_taken_for_whole(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """Bytes have no word for an error: the connection breaks. The server logs it, so the gateway is the test's own."""
    gateway = gateways()
    lane = gateway.add_lane(upstream)
    gate = Gate()
    upstream.script([AUDIO, chunk(b"RIFF" * 100), gate, RESET])
    with RawClient(gateway.port) as client:
        client.send(
            request_bytes(
                "POST",
                "/v1/audio/speech",
                [gateway.auth, ("Content-Type", "application/json")],
                json.dumps({"model": lane.model, "input": "x", "voice": "v"}).encode(),
            )
        )
        assert client.head().status == 200
        assert client.chunk() == b"RIFF" * 100
        gate.open()
        # Not the chunk of no length that ends a whole body.
        assert client.until_closed().rest == b""
    [record] = gateway.records_of(lane)
    assert (record["outcome"], record["errorKind"]) == ("upstream_failed", "upstream_reset")


def test_sound_fails_over_before_its_first_byte(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    upstream.script([AUDIO, RESET], [AUDIO, chunk(b"sound"), LAST_CHUNK])
    status, body, headers = speak(gateway, lane.model)
    assert (status, body, headers["content-type"]) == (200, b"sound", "audio/mpeg")


def picture(kind: str, **more: Any) -> bytes:
    return event({"type": f"image_generation.{kind}", "b64_json": "AAAA", **more})


BROKEN: dict[str, Script] = {
    "cut off": [SSE_HEAD, chunk(picture("partial_image")), RESET],
    "ended early": [SSE_HEAD, chunk(picture("partial_image")), LAST_CHUNK],
    "an error": [
        SSE_HEAD,
        chunk(picture("partial_image")),
        chunk(event({"error": {"message": "no"}})),
    ],
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_stream_of_pictures_says_so(
    gateway: Gateway, upstream: Upstream, script: Script
) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(script)
    asked = {"model": lane.model, "prompt": "x", "stream": True}
    answer = gateway.caller.post("/v1/images/generations", json=asked)
    events = [part for part in answer.text.split("\n\n") if part.startswith("data: {")]
    assert "partial_image" in events[0]
    assert json.loads(events[-1].removeprefix("data: "))["error"]["message"]
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert record["outcome"] == "upstream_failed"


def test_a_whole_stream_of_pictures_is_counted(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    done = picture("completed", usage={"input_tokens": 5, "output_tokens": 272})
    upstream.script([SSE_HEAD, chunk(picture("partial_image") + done), LAST_CHUNK])
    asked = {"model": lane.model, "prompt": "x", "stream": True}
    answer = gateway.caller.post("/v1/images/generations", json=asked)
    assert answer.content == picture("partial_image") + done
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["outcome"], record["tokensInput"], record["tokensOutput"]) == (
        "completed",
        5,
        272,
    )


def test_a_form_is_sent_again_to_the_next(gateway: Gateway, upstream: Upstream) -> None:
    """From disk, with the provider's own name of the model, byte for byte otherwise."""
    lane = gateway.add_lane(upstream, connections=2)
    upstream.script(reply({"error": {"message": "no"}}, 500), reply({"text": "words"}))
    recording = bytes(range(256)) * 1024
    answer = gateway.caller.post(
        "/v1/audio/transcriptions",
        data={"model": lane.model},
        files={"file": ("a.wav", recording, "audio/wav")},
    )
    assert answer.json() == {"text": "words"}
    first, second = (seen.body for seen in upstream.requests)
    assert first == second
    assert recording in first
    assert b'name="model"\r\n\r\nm\r\n' in first
    assert b"multipart/form-data" in (upstream.last.header("content-type") or "").encode()
