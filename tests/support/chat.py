"""Asking for a chat completion on a lane, and judging what came back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import httpx

from tests.support.processes import Gateway, Lane, expect
from tests.support.raw import RawClient, RawResponse
from tests.support.tls import NO_AUTHORITIES

CHAT: Final = "/v1/chat/completions"


def chat_bytes(lane: Lane, **fields: Any) -> bytes:
    return json.dumps(lane.body(**fields)).encode()


def send_chat(client: RawClient, lane: Lane, **fields: Any) -> None:
    """Sends the request and reads nothing."""
    client.request("POST", CHAT, [lane.gateway.auth], chat_bytes(lane, **fields))


def ask(lane: Lane, **fields: Any) -> RawResponse:
    """One chat request on a connection of its own: the whole answer. Fails if its framing is broken."""
    with RawClient(lane.gateway.port, timeout_s=20) as client:
        send_chat(client, lane, **fields)
        return client.response()


def chat_with_key(gateway: Gateway, key: str, body: dict[str, Any]) -> httpx.Response:
    """The answer to a chat request under a key of the test's own."""
    headers = {"authorization": f"Bearer {key}"}
    return httpx.post(
        f"{gateway.url}{CHAT}", json=body, headers=headers, timeout=30, verify=NO_AUTHORITIES
    )


def counted_requests(gateway: Gateway, key_id: str) -> int:
    """How many requests of a key the reports count."""
    told = expect(gateway.admin.get("/api/usage/history", params={"groupBy": "key"}), 200)
    return sum(row["requests"] for row in told["history"] if row["keyId"] == key_id)


def request_id(answer: RawResponse) -> str:
    found = answer.header("x-gateway-request-id")
    assert found, answer
    return found


def error_of(answer: RawResponse) -> tuple[int, str]:
    """Status and code of an error in OpenAI's shape; fails if it is not one."""
    error = answer.json()["error"]
    assert error["message"]
    assert error["type"]
    assert request_id(answer)
    return answer.status, error["code"]


def events_of(body: bytes) -> list[str]:
    """The data of a stream's events, as a strict reader of the format takes them."""
    text = body.decode().replace("\r\n", "\n").replace("\r", "\n")
    assert text.endswith("\n\n"), f"the last event is not ended: {text[-80:]!r}"
    found = []
    for block in text.split("\n\n"):
        lines = [
            line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")
        ]
        if lines:
            found.append("\n".join(lines))
    return found


def terminal_error(body: bytes) -> dict[str, Any]:
    """The error that ends a stream: one error object, `[DONE]` behind it, and good events before it."""
    *content, error_text, done = events_of(body)
    assert done == "[DONE]"
    for one in content:
        assert "error" not in json.loads(one), one
    error: dict[str, Any] = json.loads(error_text)["error"]
    assert error["message"]
    assert error["type"]
    return error


def failure_code(answer: RawResponse) -> str:
    """The code of a failed stream, told by its status or, once a head was out, in its body."""
    if answer.status == 200:
        return str(terminal_error(answer.body)["code"])
    return error_of(answer)[1]


def assert_failed(gateway: Gateway, answer: RawResponse, kind: str) -> dict[str, Any]:
    """There is one record, as a failure of the provider."""
    record = gateway.record(request_id(answer))
    assert (record["outcome"], record["errorKind"]) == ("upstream_failed", kind)
    return record


def read_stream(client: RawClient, until: Callable[[bytes], bool]) -> bytes:
    """Body bytes of an open chunked answer until they satisfy the test."""
    got = b""
    while not until(got):
        piece = client.chunk()
        assert piece is not None, f"the stream ended: {got!r}"
        got += piece
    return got
