"""What callers may not send as a body: told what is wrong with it, and never a 5xx; what is JSON passes untouched."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.support.chat import CHAT, chat_bytes, error_of
from tests.support.processes import Gateway, Lane
from tests.support.raw import RawClient, request_bytes
from tests.support.upstream import LAST_CHUNK, chunk

# ------------------------------------------------------------------------------------ H12: JSON


def with_model(lane: Lane, text: str) -> bytes:
    return text.replace("MODEL", lane.model).encode("utf-8", "surrogatepass")


MESSAGES = '"messages":[{"role":"user","content":"hi"}]'
BAD_JSON = {
    "empty": "",
    "not JSON": "hello",
    "an array": "[]",
    "a string": '"x"',
    "cut": '{"model":"MODEL",' + MESSAGES,
    "trailing text": '{"model":"MODEL",' + MESSAGES + "} x",
    "two documents": '{"model":"MODEL",' + MESSAGES + '}{"model":"MODEL"}',
    "a trailing comma": '{"model":"MODEL",' + MESSAGES + ",}",
    "a comment": '{"model":"MODEL",/* x */' + MESSAGES + "}",
    "single quotes": "{'model':'MODEL'}",
    "NaN": '{"model":"MODEL","temperature":NaN,' + MESSAGES + "}",
    "Infinity": '{"model":"MODEL","temperature":Infinity,' + MESSAGES + "}",
    "a number beyond all": '{"model":"MODEL","x":1e400,' + MESSAGES + "}",
    "a leading zero": '{"model":"MODEL","seed":01,' + MESSAGES + "}",
    "the model twice": '{"model":"MODEL","model":"other/m",' + MESSAGES + "}",
    "the model twice, escaped": '{"model":"MODEL","mod\\u0065l":"other/m",' + MESSAGES + "}",
    "the messages twice": '{"model":"MODEL",' + MESSAGES + "," + MESSAGES + "}",
    "stream twice": '{"model":"MODEL","stream":false,"stream":true,' + MESSAGES + "}",
    "100 000 deep": '{"model":"MODEL","x":' + "[" * 100_000 + "]" * 100_000 + "," + MESSAGES + "}",
    "300 deep": '{"model":"MODEL","x":' + '{"a":' * 300 + "1" + "}" * 300 + "," + MESSAGES + "}",
    "no messages": '{"model":"MODEL"}',
    "messages empty": '{"model":"MODEL","messages":[]}',
    "messages of the wrong type": '{"model":"MODEL","messages":"hi"}',
    "a million messages": '{"model":"MODEL","messages":[' + "0," * 999_999 + "0]}",
    "stream of the wrong type": '{"model":"MODEL","stream":"yes",' + MESSAGES + "}",
    "a control character in a string": '{"model":"MODEL","x":"\x01",' + MESSAGES + "}",
    "a control character in the model": '{"model":"MODEL\\n",' + MESSAGES + "}",
    "a long model": '{"model":"MODEL' + "m" * 400 + '",' + MESSAGES + "}",
    "a lone surrogate as bytes": '{"model":"MODEL","x":"\ud800",' + MESSAGES + "}",
    "a lone surrogate in the model": '{"model":"MODEL\\ud800",' + MESSAGES + "}",
}


@pytest.mark.parametrize("text", BAD_JSON.values(), ids=BAD_JSON.keys())
def test_bad_json_is_refused(gateway: Gateway, lane: Lane, text: str) -> None:
    """H12: 400 that says what is wrong; never dispatched, never a 5xx."""
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, [gateway.auth], with_model(lane, text))
        assert error_of(client.response()) == (400, "invalid_request")
    assert lane.upstream.requests == []


def test_invalid_utf8_is_refused(gateway: Gateway, lane: Lane) -> None:
    """H12: bytes that are no UTF-8 are a 400."""
    with RawClient(gateway.port) as client:
        client.request(
            "POST",
            CHAT,
            [gateway.auth],
            chat_bytes(lane, user="hi").replace(b'"hi"', b'"\xff\xfe"'),
        )
        assert error_of(client.response()) == (400, "invalid_request")


GOOD_JSON = {
    "long integers": '{"model":"MODEL","seed":123456789012345678901234567890,' + MESSAGES + "}",
    "large exponents": '{"model":"MODEL","x":1e300,' + MESSAGES + "}",
    "200 deep": '{"model":"MODEL","x":' + "[" * 200 + "]" * 200 + "," + MESSAGES + "}",
    "duplicate keys of no concern": '{"model":"MODEL","x":{"a":1,"b":2},' + MESSAGES + "}",
    "white space": ' \r\n\t{ "model" : "MODEL" , ' + MESSAGES + " } \n",
}


@pytest.mark.parametrize("text", GOOD_JSON.values(), ids=GOOD_JSON.keys())
def test_unusual_json_passes_untouched(gateway: Gateway, lane: Lane, text: str) -> None:
    """H12: what is JSON passes as the bytes it was."""
    body = with_model(lane, text)
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, [gateway.auth], body)
        answer = client.response()
        assert answer.status == 200, answer.body
    assert lane.upstream.last.body == body.replace(json.dumps(lane.model).encode(), b'"m"')


@pytest.mark.parametrize(
    "kind",
    (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "",
    ),
)
def test_only_json_is_taken(gateway: Gateway, lane: Lane, kind: str) -> None:
    """H12: another content type, or none, is a 415."""
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, [gateway.auth, ("Content-Type", kind)], chat_bytes(lane))
        assert error_of(client.response()) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind", ("application/json; charset=utf-8", "Application/JSON", "application/json ;x=y")
)
def test_json_may_be_written_in_many_ways(gateway: Gateway, lane: Lane, kind: str) -> None:
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, [gateway.auth, ("Content-Type", kind)], chat_bytes(lane))
        assert client.response().status == 200


@pytest.mark.parametrize("coding", ("gzip", "zstd"))
def test_a_coded_body_is_refused(gateway: Gateway, lane: Lane, coding: str) -> None:
    """H13: request bodies are taken uncoded only, and the answer says how to send them."""
    with RawClient(gateway.port) as client:
        client.request(
            "POST", CHAT, [gateway.auth, ("Content-Encoding", coding)], b"\x1f\x8b" + b"x" * 100
        )
        answer = client.response()
        assert error_of(answer) == (415, "unsupported_media_type")
        assert answer.header("accept-encoding") == "identity"
        assert b"enable_request_compression" in answer.body


# --------------------------------------------------------------- H12: HTTP/2, without a length


@functools.cache
def curl_speaks_http2() -> bool:
    curl = shutil.which("curl")
    if curl is None:
        return False
    told = subprocess.run([curl, "--version"], capture_output=True, text=True, check=True)
    return "HTTP2" in told.stdout


def post_of_unknown_length(gateway: Gateway, body: bytes, kind: str) -> tuple[int, Any]:
    """Status and JSON of a chat request over HTTP/2 whose body has no announced length."""
    name, value = gateway.auth
    command = ["curl", "-sS", "--noproxy", "*", "--max-time", "20", "--http2-prior-knowledge"]
    command += ["-X", "POST", "-T", "-", "-H", f"{name}: {value}", "-H", f"Content-Type: {kind}"]
    command += ["-w", "\n%{http_version} %{http_code}", gateway.url + CHAT]
    told = subprocess.run(command, input=body, capture_output=True, check=True)
    text, _, end = told.stdout.rpartition(b"\n")
    version, status = end.split()
    assert version == b"2"
    return int(status), json.loads(text)


@pytest.mark.skipif(not curl_speaks_http2(), reason="needs a curl that speaks HTTP/2")
def test_http2_needs_no_length(gateway: Gateway, lane: Lane) -> None:
    """H12: in HTTP/2 a body's end is in its frames: it is read whole without an announced length."""
    long = [{"role": "user", "content": "x" * 100_000}]
    body = chat_bytes(lane, messages=long)
    status, answer = post_of_unknown_length(gateway, body, "application/json")
    assert (status, answer["object"]) == (200, "chat.completion")
    assert lane.upstream.last.body == body.replace(json.dumps(lane.model).encode(), b'"m"')


@pytest.mark.skipif(not curl_speaks_http2(), reason="needs a curl that speaks HTTP/2")
@pytest.mark.parametrize("kind", ("text/plain", ""))
def test_http2_without_a_length_must_be_json(gateway: Gateway, lane: Lane, kind: str) -> None:
    """H12: a body that nobody announced is held to its type all the same."""
    status, answer = post_of_unknown_length(gateway, chat_bytes(lane), kind)
    assert (status, answer["error"]["code"]) == (415, "unsupported_media_type")
    assert lane.upstream.requests == []


# ------------------------------------------------------------------------- bodies that nobody asked for

# One route of each kind that deletes: control's for keys, for managers and for sessions, scraping's, and a file's.
DELETED = ["/v1/files/{}", "/api/keys/{}", "/api/combos/{}", "/api/crawl/{}", "/v1/responses/{}"]


@pytest.mark.parametrize("path", DELETED)
@pytest.mark.parametrize(
    "head",
    [[("Content-Type", "application/json")], [], [("Transfer-Encoding", "chunked")]],
    ids=("JSON", "untyped", "chunked"),
)
def test_a_delete_with_a_small_body_is_taken(
    gateway: Gateway, path: str, head: list[tuple[str, str]]
) -> None:
    """Many clients send `{}` along: the answer is that of a DELETE without a body."""
    target = path.format("00000000-0000-4000-8000-000000000000")
    data = chunk(b"{}") + LAST_CHUNK if ("Transfer-Encoding", "chunked") in head else b"{}"
    with RawClient(gateway.port) as client:
        client.send(request_bytes("DELETE", target, [gateway.auth]))
        plain = client.response()
        lines = (
            [*head]
            if ("Transfer-Encoding", "chunked") in head
            else [*head, ("Content-Length", "2")]
        )
        client.send(request_bytes("DELETE", target, [gateway.auth, *lines]) + data)
        answer = client.response()
        assert answer.status == plain.status != 413
        # The connection goes on behind the body.
        client.send(request_bytes("GET", "/healthz"))
        assert client.response().status == 200


def test_a_delete_with_a_large_body_is_refused(gateway: Gateway) -> None:
    target = "/v1/files/file-none"
    for size, status in ((64 * 1024, 404), (64 * 1024 + 1, 413)):
        with RawClient(gateway.port) as client:
            client.request("DELETE", target, [gateway.auth], b" " * size)
            assert client.response().status == status
        with RawClient(gateway.port) as client:
            head = [gateway.auth, ("Transfer-Encoding", "chunked")]
            client.send(request_bytes("DELETE", target, head) + chunk(b" " * size) + LAST_CHUNK)
            assert client.response().status == status


def test_a_body_that_is_too_large_ends_its_connection_and_says_so(gateway: Gateway) -> None:
    """A client that sent its next request there would lose it."""
    for size in (64 * 1024 + 1, 128 * 1024):
        head = [gateway.auth, ("Content-Type", "application/json")]
        with RawClient(gateway.port) as client:
            client.request("POST", "/v1/session-leases", head, b" " * size)
            answer = client.response()
            assert (answer.status, answer.header("connection")) == (413, "close")
        with RawClient(gateway.port) as client:
            chunked = [*head, ("Transfer-Encoding", "chunked")]
            client.send(
                request_bytes("POST", "/v1/session-leases", chunked)
                + chunk(b" " * size)
                + LAST_CHUNK
            )
            answer = client.response()
            assert (answer.status, answer.header("connection")) == (413, "close")
