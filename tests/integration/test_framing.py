"""Where one request ends and the next begins: nobody gets a second answer for bytes that were part of a body."""

from __future__ import annotations

import contextlib
import json

import pytest

from tests.support.chat import CHAT, chat_bytes
from tests.support.processes import Gateway, Lane
from tests.support.raw import RawClient, answers_to, request_bytes
from tests.support.upstream import (
    DONE,
    Upstream,
    chunk,
    completion,
    delta,
    finish,
    reply,
    stream,
)

pytestmark = pytest.mark.both_fronts

MIB = 1024 * 1024
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

# ---------------------------------------------------------------------------------- H4: framing


def post(
    *lines: str, body: bytes = b"", version: str = "1.1", host: str = "Host: localhost"
) -> bytes:
    text = "\r\n".join([f"POST /v1/chat/completions HTTP/{version}", host, *lines, "", ""])
    return text.encode("latin-1") + body


SMUGGLED = b"0\r\n\r\n" + HEALTH
CHUNKED = "Transfer-Encoding: chunked"
FRAMING = {
    "two lengths": post("Content-Length: 6", "Content-Length: 5", body=b"{}{}{}" + HEALTH),
    "a list of lengths": post("Content-Length: 2, 4", body=b"{}{}" + HEALTH),
    "a plus": post("Content-Length: +2", body=b"{}" + HEALTH),
    "negative": post("Content-Length: -1", body=HEALTH),
    "a length in hex": post("Content-Length: 0x2", body=b"{}" + HEALTH),
    "a length with text": post("Content-Length: 2 2", body=b"{}" + HEALTH),
    "a length that overflows": post("Content-Length: 18446744073709551618", body=b"{}" + HEALTH),
    "an empty length": post("Content-Length:", body=HEALTH),
    "an unknown coding": post("Transfer-Encoding: cow", body=SMUGGLED),
    "chunked not last": post("Transfer-Encoding: chunked, identity", body=SMUGGLED),
    "chunked misspelt": post("Transfer-Encoding: xchunked", body=SMUGGLED),
    "space before the colon": post("Content-Length : 2", body=b"{}" + HEALTH),
    "space before TE's colon": post("Transfer-Encoding : chunked", body=SMUGGLED),
    "a folded line": post("X-A: b", " Content-Length: 2", body=HEALTH),
    "a folded coding": post("Transfer-Encoding:", " chunked", body=SMUGGLED),
    "a chunk size with 0x": post(CHUNKED, body=b"0x2\r\n{}\r\n" + SMUGGLED),
    "a chunk size with a plus": post(CHUNKED, body=b"+2\r\n{}\r\n" + SMUGGLED),
    "a chunk size that overflows": post(CHUNKED, body=b"10000000000000002\r\n{}\r\n" + SMUGGLED),
    "an empty chunk size": post(CHUNKED, body=b"\r\n{}\r\n" + SMUGGLED),
    "a chunk longer than its size": post(CHUNKED, body=b"2\r\n{}{}\r\n" + SMUGGLED),
    "LF in a chunk extension": post(CHUNKED, body=b"2;a\nb\r\n{}\r\n" + SMUGGLED),
    "a parameter of the coding": post("Transfer-Encoding: chunked;q=1", body=SMUGGLED),
    "a quoted coding": post('Transfer-Encoding: "chunked"', body=SMUGGLED),
    "an empty coding after": post("Transfer-Encoding: chunked,", body=SMUGGLED),
    "an empty coding before": post("Transfer-Encoding: ,chunked", body=SMUGGLED),
    "a vertical tab before the coding": post("Transfer-Encoding: \x0bchunked", body=SMUGGLED),
    "no coding, and a length": post("Transfer-Encoding:", "Content-Length: 4", body=SMUGGLED),
    "identity, and a length": post(
        "Transfer-Encoding: identity", "Content-Length: 4", body=SMUGGLED
    ),
    "a blank before a chunk size": post(CHUNKED, body=b" 2\r\n{}\r\n" + SMUGGLED),
    "an underscore in a chunk size": post(CHUNKED, body=b"2_0\r\n{}\r\n" + SMUGGLED),
    "CR in a chunk extension": post(CHUNKED, body=b"2;a\rb\r\n{}\r\n" + SMUGGLED),
    "LF in a quoted extension": post(CHUNKED, body=b'2;a="\n"\r\n{}\r\n' + SMUGGLED),
    "LF after a chunk": post(CHUNKED, body=b"2\r\n{}\n" + SMUGGLED),
    "nothing after a chunk": post(CHUNKED, body=b"2\r\n{}" + SMUGGLED),
    "two CR after the last size": post(CHUNKED, body=b"0\r\r\n\r\n" + HEALTH),
    "a folded trailer": post(CHUNKED, body=b"2\r\n{}\r\n0\r\nA: b\r\n c\r\n\r\n" + HEALTH),
    "a request as a trailer": post(CHUNKED, body=b"2\r\n{}\r\n0\r\n" + HEALTH),
    "NUL in a trailer": post(CHUNKED, body=b"2\r\n{}\r\n0\r\nA: \0\r\n\r\n" + HEALTH),
    "a fold before the first header": post(
        "Content-Length: 2", body=b"{}" + HEALTH, host=" Host: localhost"
    ),
    "a tab in the request line": b"POST\t/v1/models\tHTTP/1.1\r\nHost: a\r\n\r\n" + HEALTH,
    "version 1.10": post("Content-Length: 0", version="1.10", body=HEALTH),
    "NUL in a name": post("X-\0A: b", "Content-Length: 0", body=HEALTH),
    "NUL in a value": post("X-A: \0", "Content-Length: 0", body=HEALTH),
    "CR in a value": post("X-A: b\rContent-Length: 2", body=HEALTH),
    "a header without a name": post(": b", "Content-Length: 0", body=HEALTH),
    "a line without a colon": post("nonsense", "Content-Length: 0", body=HEALTH),
    "no such version": post("Content-Length: 0", version="1.9", body=HEALTH),
    "version 3": b"POST /v1/chat/completions HTTP/3.0\r\nHost: a\r\n\r\n" + HEALTH,
    "no version": b"POST /v1/chat/completions\r\nHost: a\r\n\r\n" + HEALTH,
    "two spaces": b"POST  /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
    + HEALTH,
    "a space in the target": b"POST /v1/chat completions HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
    + HEALTH,
    "a control character in the target": b"GET /v1/mod\x01els HTTP/1.1\r\nHost: a\r\n\r\n" + HEALTH,
    "a method that is none": b"P(ST / HTTP/1.1\r\nHost: a\r\n\r\n" + HEALTH,
    "binary": bytes(range(256)) + b"\r\n\r\n" + HEALTH,
    "TLS to a plain port": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    + b"\0" * 64
    + b"\r\n\r\n"
    + HEALTH,
}


@pytest.mark.one_node(reason="the balancer reads requests before a node does")
@pytest.mark.parametrize("data", FRAMING.values(), ids=FRAMING.keys())
def test_broken_framing_ends_the_connection(
    gateway: Gateway, upstream: Upstream, data: bytes
) -> None:
    """H4: 400 or no answer at all, the connection ends, and the bytes behind are never a request of their own."""
    found, ended = answers_to(gateway.port, data)
    assert len(found) <= 1, [answer.status for answer in found]
    assert all(400 <= answer.status < 500 or answer.status in {501, 505} for answer in found)
    assert ended, f"the connection stays open after {[answer.status for answer in found]}"


AMBIGUOUS = {
    "length, then chunked": post("Content-Length: 4", CHUNKED, body=SMUGGLED),
    "chunked, then length": post(CHUNKED, "Content-Length: 4", body=SMUGGLED),
    "length beyond the chunks": post(f"Content-Length: {len(SMUGGLED)}", CHUNKED, body=SMUGGLED),
    "chunked on HTTP/1.0": post(CHUNKED, version="1.0", body=SMUGGLED),
}


@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_framing_ends_the_connection(gateway: Gateway, data: bytes) -> None:
    """H4: two framings at once: whichever one a proxy before us believed, it gets one answer at most from us."""
    found, ended = answers_to(gateway.port, data)
    assert [answer.status for answer in found if answer.status == 200] == []
    assert len(found) <= 1, [answer.status for answer in found]
    assert ended


def test_chunked_twice_is_refused(gateway: Gateway) -> None:
    """H4: a body that claims to be chunked two times over is not guessed at."""
    found, ended = answers_to(
        gateway.port, post(f"{gateway.auth[0]}: {gateway.auth[1]}", CHUNKED, CHUNKED, body=SMUGGLED)
    )
    assert [answer.status for answer in found] == [400]
    assert ended


BROKEN_CHUNKS = {
    "a size that is no number": b"zz\r\n{}\r\n0\r\n\r\n",
    "a size with a sign": b"+2\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than its size": b"2\r\n{}{}\r\n0\r\n\r\n",
    "a size that overflows": b"10000000000000002\r\n{}\r\n",
}


@pytest.mark.one_node(reason="the balancer reads requests before a node does")
@pytest.mark.parametrize(
    "path", (CHAT, "/v1/messages", "/v1beta/models/m:generateContent", "/v1/responses")
)
@pytest.mark.parametrize("chunks", BROKEN_CHUNKS.values(), ids=BROKEN_CHUNKS.keys())
def test_broken_chunks_of_a_caller_with_a_key_are_told(
    gateway: Gateway, path: str, chunks: bytes
) -> None:
    """The answer is ours, in the caller's form and with our headers, whatever server stands in front."""
    head = post(f"{gateway.auth[0]}: {gateway.auth[1]}", "Content-Type: application/json", CHUNKED)
    found, ended = answers_to(
        gateway.port, head.replace(CHAT.encode(), path.encode()) + chunks + HEALTH
    )
    assert [answer.status for answer in found] == [400]
    assert ended
    assert found[0].header("x-gateway-version")
    assert found[0].header("x-gateway-request-id")
    assert found[0].header("connection") == "close"
    error = found[0].json()["error"]
    assert "chunk" in error["message"]
    form = {"/v1/messages": ("type", "invalid_request_error")}
    name, value = form.get(path, ("code", 400 if "v1beta" in path else "invalid_request"))
    assert error[name] == value, error


# ------------------------------------------------------------------- H5: early answers, unread bodies

EARLY = {
    "401": ("POST", CHAT, [("Authorization", "Bearer sk-fl-wrong")], 401),
    "404": ("POST", "/v1/nothing", [], 404),
    "405": ("DELETE", CHAT, [], 405),
    "415": ("POST", CHAT, [("Content-Type", "text/plain")], 415),
    "a body where none belongs": ("GET", "/healthz", [], 200),
}


@pytest.mark.parametrize(("method", "path", "headers", "status"), EARLY.values(), ids=EARLY.keys())
@pytest.mark.parametrize("size", (100, 3 * MIB), ids=("small", "large"))
def test_an_unread_body_is_never_a_request(
    gateway: Gateway, method: str, path: str, headers: list[tuple[str, str]], status: int, size: int
) -> None:
    """H5: answered before the body was read, the next answer belongs to the next request, or there is none."""
    poison = (b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * (size // 50 + 1))[
        :size
    ]
    credentials = [] if any(name == "Authorization" for name, _ in headers) else [gateway.auth]
    data = request_bytes(method, path, [*credentials, *headers], poison) + HEALTH
    found, ended = answers_to(gateway.port, data, quiet_s=0.5)
    statuses = [answer.status for answer in found]
    assert statuses[:1] == [status] or (not statuses and ended)
    assert len(found) <= 2
    if len(found) == 2:
        assert found[1].json() == {"status": "ok"}
    else:
        assert ended, "neither closed nor answered"


@pytest.mark.parametrize("size", (200, 60_000, 300_000))
def test_a_connection_that_ends_behind_an_unread_body_is_said_to_end(
    gateway: Gateway, size: int
) -> None:
    """A caller that was refused sends its next request on the same connection, unless the answer says that it ends."""
    refused = request_bytes("POST", CHAT, [("Authorization", "Bearer sk-fl-wrong")], b" " * size)
    for _ in range(40):
        with RawClient(gateway.port) as client:
            with contextlib.suppress(ConnectionError):  # answered and closed before all was sent
                client.send(refused)
            answer = client.response()
            assert answer.status == 401
            if answer.header("connection") is None:
                client.send(HEALTH)
                assert client.response().json() == {"status": "ok"}
            else:
                assert size > 200


# ----------------------------------------------------------------- honest framing that is less usual


def test_requests_that_are_sent_together_are_answered_in_order(
    gateway: Gateway, lane: Lane
) -> None:
    """Pipelined requests get their own answers, in the order in which they came."""
    lane.upstream.script(
        reply(completion("one")), reply(completion("two")), reply(completion("three"))
    )
    with RawClient(gateway.port) as client:
        client.send(request_bytes("POST", CHAT, [gateway.auth], chat_bytes(lane)) * 3)
        said = [client.response().json()["choices"][0]["message"]["content"] for _ in range(3)]
    assert said == ["one", "two", "three"]


def test_a_chunked_body_reaches_the_provider_whole(gateway: Gateway, lane: Lane) -> None:
    """A body in chunks, with an extension and a trailer, is the same request as one with a length."""
    body = chat_bytes(lane)
    pieces = b"".join(chunk(body[at : at + 7]) for at in range(0, len(body), 7))
    framed = pieces.replace(b"7\r\n", b"7;name=value\r\n", 1) + b"0\r\nX-Trailer: late\r\n\r\n"
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, [gateway.auth, ("Transfer-Encoding", "chunked")], framed)
        assert client.response().status == 200
        client.send(HEALTH)
        assert client.response().json() == {"status": "ok"}
    assert lane.upstream.last.body == body.replace(lane.model.encode(), b"m")
    assert lane.upstream.last.header("x-trailer") is None


def test_a_body_that_waits_to_be_asked_for_is_asked_for(gateway: Gateway, lane: Lane) -> None:
    """`Expect: 100-continue`: a caller that may go on is told so; one that is refused is told that instead."""
    body = chat_bytes(lane)
    length = ("Content-Length", str(len(body)))
    kind = ("Content-Type", "application/json")
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, [gateway.auth, kind, length, ("Expect", "100-continue")])
        assert client.exactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(body)
        assert client.response().status == 200
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, [kind, length, ("Expect", "100-continue")])
        assert client.exactly(12) == b"HTTP/1.1 401"


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_callers_of_http_1_0_are_served(gateway: Gateway, lane: Lane, streamed: bool) -> None:
    """HTTP/1.0 knows no chunks: the answer has a length or ends with the connection."""
    if streamed:
        lane.upstream.script(stream(delta("a"), finish(), DONE))
    body = chat_bytes(lane, stream=streamed)
    with RawClient(gateway.port) as client:
        client.send(
            request_bytes("POST", CHAT, [gateway.auth], body).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
        )
        answer = client.response()
    assert answer.status == 200
    assert answer.header("transfer-encoding") is None
    assert answer.body == (
        delta("a") + finish() + DONE if streamed else json.dumps(completion()).encode()
    )
