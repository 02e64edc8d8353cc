"""One engine behind two doors: both say the same, byte for byte, but for what is never the same twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.chat import CHAT, chat_bytes
from tests.support.processes import Gateway, Lane, start_gateway
from tests.support.raw import Closed, RawClient, request_bytes
from tests.support.upstream import DONE, Upstream, completion, delta, finish, reply, stream

DOORS = ("granian", "native")


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Gateway]]:
    """A gateway behind each door."""
    with ExitStack() as running:
        yield {
            front: running.enter_context(
                start_gateway(tmp_path_factory.mktemp(front), FAIRLEAD_FRONT=front)
            )
            for front in DOORS
        }


@pytest.fixture
def lanes(doors: dict[str, Gateway], upstream: Upstream) -> dict[str, Lane]:
    """The same provider behind both."""
    return {front: gateway.add_lane(upstream) for front, gateway in doors.items()}


# What tells one request from another, one lane from another, one moment from another.
VARYING = (
    (rb"(?i)\r\ndate: [^\r]+", b""),
    # granian signs its answers.
    (rb"\r\nserver: granian", b""),
    (rb"req_[0-9a-f]+", b"req_ID"),
    (rb"(latency[a-z_-]*:? ?=?)\d+", rb"\1N"),
    (rb"t[0-9a-f]{8}", b"LANE"),
    (rb"(?i)(etag: )[^\r]+", rb"\1TAG"),
)


def said(port: int, data: bytes, *, bodyless: bool = False) -> bytes:
    """Everything that is answered to these bytes, without what varies, and how the connection goes on."""
    with RawClient(port, timeout_s=10) as client:
        taken = bytearray()
        client.send(data)
        try:
            answer = client.response(bodyless=bodyless)
            head = f"{answer.status} {answer.reason}\r\n".encode()
            taken += head + b"\r\n".join(
                f"{name}: {value}".encode() for name, value in answer.headers
            )
            taken += b"\r\n\r\n" + answer.body
            client.socket.settimeout(0.3)
            try:
                taken += b"" if client.socket.recv(1) else b"<ended>"
            except TimeoutError:
                taken += b"<kept>"
        except Closed as closed:
            taken += closed.rest + b"<ended>"
    found = bytes(taken)
    for pattern, place in VARYING:
        found = re.sub(pattern, place, found)
    return found


def get(path: str, *headers: tuple[str, str], method: str = "GET") -> bytes:
    return request_bytes(method, path, headers)


PLAIN = {
    "health": get("/healthz"),
    "health's head": get("/healthz", method="HEAD"),
    "nothing there": get("/v1/nothing"),
    "another method": get("/v1/chat/completions", method="DELETE"),
    "options": get("/v1/chat/completions", method="OPTIONS"),
    "trace": get("/v1/models", method="TRACE"),
    "connect": b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n",
    "no key": request_bytes("POST", CHAT, [], b"{}"),
    "an upgrade to nothing": get("/healthz", ("Connection", "Upgrade"), ("Upgrade", "foo")),
    "an upgrade to h2c": get(
        "/healthz", ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"),
        ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"),
    ),
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "HTTP/1.0": b"GET /healthz HTTP/1.0\r\nHost: a\r\n\r\n",
    "HTTP/1.0, kept": b"GET /healthz HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
    "a close": get("/healthz", ("Connection", "close")),
    "too many headers": get("/healthz", *((f"X-{number}", "y") for number in range(101))),
    "a large header": get("/healthz", ("X-Large", "y" * 40_000)),
    "a long target": get("/healthz?" + "y" * 9000),
    "an encoded body": request_bytes("POST", CHAT, [("Content-Encoding", "gzip")], b"x"),
    "no framing": b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n\r\n",
    "nonsense": b"nonsense\r\n\r\n",
    "a fragment": b"GET /healthz#x HTTP/1.1\r\nHost: a\r\n\r\n",
    "an asterisk": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "the absolute form": b"GET http://a/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "another scheme": b"GET ftp://a/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "a dashboard page": get("/login"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_both_doors_answer_alike(doors: dict[str, Gateway], name: str) -> None:
    data = PLAIN[name]
    bodyless = data.startswith(b"HEAD")
    granian, native = (said(doors[front].port, data, bodyless=bodyless) for front in DOORS)
    assert native == granian


def test_both_doors_relay_alike(lanes: dict[str, Lane], upstream: Upstream) -> None:
    """A plain answer, a failure, a stream and a list of models."""
    events = stream(delta("a"), delta("b"), finish(), DONE)
    for script, fields in (
        (reply(completion("hello")), {}),
        (reply({"error": {"message": "no"}}, status=400), {}),
        (events, {"stream": True}),
    ):
        upstream.script(script)
        granian, native = (
            said(
                lane.gateway.port,
                request_bytes("POST", CHAT, [lane.gateway.auth], chat_bytes(lane, **fields)),
            )
            for lane in (lanes[front] for front in DOORS)
        )
        assert native == granian
    granian, native = (
        said(lane.gateway.port, get("/v1/models", lane.gateway.auth)).split(b"\r\n\r\n")[0]
        for lane in (lanes[front] for front in DOORS)
    )
    lengths = re.compile(rb"content-length: \d+")
    assert lengths.sub(b"", native) == lengths.sub(b"", granian)


@pytest.mark.parametrize("front", DOORS)
def test_sockets_are_refused_in_words(doors: dict[str, Gateway], front: str) -> None:
    """What is no socket, or has no key, is answered as HTTP."""
    upgrade = [
        ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]  # fmt: skip
    with RawClient(doors[front].port) as client:
        client.request("GET", "/v1/ws", upgrade)
        assert client.response().status == 401
