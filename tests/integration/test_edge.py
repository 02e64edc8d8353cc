"""What callers may not send: sizes, slowness, framing tricks, hosts. Refused early, and never a second answer."""

from __future__ import annotations

import contextlib
import time

import pytest

from tests.support.chat import CHAT, ask, chat_bytes, error_of, request_id
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.raw import Closed, RawClient, RawResponse, answers_to, request_bytes
from tests.support.upstream import Upstream

pytestmark = pytest.mark.both_fronts

KIB = 1024
MIB = 1024 * KIB
HEADER_TIMEOUT_S = 10.0
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def assert_refused(gateway: Gateway, answer: RawResponse, kind: str) -> None:
    """There is one record of the request, as refused."""
    record = gateway.record(request_id(answer))
    found = (record["status"], record["outcome"], record["errorKind"])
    assert found == (answer.status, "refused", kind)


# -------------------------------------------------------------------------------- H1, H2: slowness


@pytest.mark.one_node(reason="the balancer reads requests before a node does")
def test_slow_headers_are_cut_off(gateway: Gateway, lane: Lane) -> None:
    """H1: thirty callers who never finish their headers are gone after the header timer; others are served."""
    started = time.monotonic()
    clients = [RawClient(gateway.port, timeout_s=HEADER_TIMEOUT_S + 8) for _ in range(30)]
    try:
        for client in clients:
            client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
        # Dripping does not help: the timer is for the whole block.
        for turn in range(8):
            eventually(
                lambda at=started + turn: time.monotonic() > at, "a second passed", within_s=3
            )
            with contextlib.suppress(ConnectionError):
                clients[0].send(b"x")
        for client in clients:
            client.until_closed()
    finally:
        for client in clients:
            client.close()
    assert time.monotonic() - started < HEADER_TIMEOUT_S + 5


@pytest.mark.parametrize("framing", ("length", "chunked"))
@pytest.mark.parametrize("path", (CHAT, "/api/keys"))
def test_a_body_that_stops_is_cut_off(hasty_gateway: Gateway, path: str, framing: str) -> None:
    """H2: 408 after the idle limit (one second here), and the connection ends."""
    headers = [hasty_gateway.auth, ("X-Gateway-Cli-Token", hasty_gateway.cli_token)]
    headers = headers[:1] if path == CHAT else headers[1:]
    headers += [
        ("Content-Length", "1000") if framing == "length" else ("Transfer-Encoding", "chunked")
    ]
    body = b'{"model":' if framing == "length" else b'9\r\n{"model":\r\n'
    started = time.monotonic()
    with RawClient(hasty_gateway.port) as client:
        client.request("POST", path, headers, body)
        answer = client.response()
        assert error_of(answer) == (408, "request_timeout")
        assert 0.9 < time.monotonic() - started < 5
        client.until_closed()
    if path == CHAT:
        assert_refused(hasty_gateway, answer, "request_timeout")


def test_a_body_that_keeps_coming_is_read(hasty_gateway: Gateway, upstream: Upstream) -> None:
    """H2: a slow body that neither pauses for longer than the limit nor falls under 1 KiB/s is an honest one."""
    lane = hasty_gateway.add_lane(upstream)
    body = chat_bytes(lane, padding="x" * 12_000)
    whole = request_bytes("POST", CHAT, [hasty_gateway.auth], body)
    started = time.monotonic()
    with RawClient(hasty_gateway.port) as client:
        client.send(whole[: -len(body)])
        for turn in range(5):
            eventually(lambda at=started + turn * 0.6: time.monotonic() > at, "the caller is slow")
            client.send(body[turn * 2000 : turn * 2000 + 2000])
        client.send(body[10_000:])
        assert client.response().status == 200


# ------------------------------------------------------------------------------------ H3: sizes

TOO_BIG = {
    "300 headers": ([(f"X-{number}", "y") for number in range(300)], "/v1/models", 431),
    "101 headers": ([(f"X-{number}", "y") for number in range(100)], "/v1/models", 431),
    "a value of 33 kB": ([("X-Big", "y" * 33 * KIB)], "/v1/models", 431),
    "a value of 100 kB": ([("X-Big", "y" * 100 * KIB)], "/v1/models", 431),
    "a value of 1 MiB": ([("X-Big", "y" * MIB)], "/v1/models", 431),
    "40 kB in all": ([(f"X-{number}", "y" * KIB) for number in range(40)], "/v1/models", 431),
    "10 000 cookies": (
        [("Cookie", "; ".join(f"c{number}=v" for number in range(10_000)))],
        "/v1/models",
        431,
    ),
    "a target of 9 kB": ([], "/v1/models?x=" + "y" * 9 * KIB, 414),
    "a target of 64 kB": ([], "/v1/models?x=" + "y" * 64 * KIB, 414),
    "a target of 1 MiB": ([], "/v1/models?x=" + "y" * MIB, 431),
}


@pytest.mark.parametrize(("headers", "target", "status"), TOO_BIG.values(), ids=TOO_BIG.keys())
def test_big_heads_are_refused(
    gateway: Gateway, headers: list[tuple[str, str]], target: str, status: int
) -> None:
    """H3: 431 and 414 at our limits; a target beyond the server's buffer is a head beyond it."""
    before = gateway.relay.rss_bytes
    found, _ = answers_to(gateway.port, request_bytes("GET", target, [gateway.auth, *headers]))
    assert [answer.status for answer in found] in ([status], [status, 400])
    assert gateway.relay.rss_bytes - before < 32 * MIB


def test_heads_within_the_limits_pass(gateway: Gateway) -> None:
    """H3: just below every limit a request is served."""
    headers = [gateway.auth, *((f"X-{number}", "y" * 300) for number in range(90))]
    with RawClient(gateway.port) as client:
        client.request("GET", "/v1/models?x=" + "y" * 8000, headers)
        assert client.response().status == 200


@pytest.mark.parametrize("framing", ("length", "chunked"))
def test_big_bodies_are_refused(gateway: Gateway, lane: Lane, framing: str) -> None:
    """A chat body beyond 32 MiB is a 413, told before or while it is sent, and never dispatched."""
    size = 33 * MIB
    before = gateway.relay.rss_bytes
    with RawClient(gateway.port) as client:
        if framing == "length":
            headers = [
                gateway.auth,
                ("Content-Type", "application/json"),
                ("Content-Length", str(size)),
            ]
            client.request("POST", CHAT, headers)
        else:
            headers = [
                gateway.auth,
                ("Content-Type", "application/json"),
                ("Transfer-Encoding", "chunked"),
            ]
            client.request("POST", CHAT, headers)
            with contextlib.suppress(ConnectionError):
                for _ in range(33):
                    client.send(b"100000\r\n" + b"x" * MIB + b"\r\n")
        answer = client.response()
        assert error_of(answer) == (413, "too_large")
    assert lane.upstream.requests == []
    if framing == "chunked":  # a body that is refused by its announced length was never admitted
        assert_refused(gateway, answer, "too_large")
    eventually(
        lambda: gateway.relay.rss_bytes - before < 100 * MIB,
        "the body's memory is given back",
    )


def test_an_announced_length_is_not_believed(gateway: Gateway) -> None:
    """A hundred callers who announce 32 MiB and send nothing cost no memory for it."""
    worker = gateway.relay
    before = worker.rss_bytes
    clients = [RawClient(gateway.port) for _ in range(100)]
    try:
        for client in clients:
            headers = [
                gateway.auth,
                ("Content-Type", "application/json"),
                ("Content-Length", str(32 * MIB)),
            ]
            client.request("POST", CHAT, headers)
            client.send(b"{")
        assert gateway.client(timeout=3).get("/healthz").status_code == 200
        assert worker.rss_bytes - before < 64 * MIB
    finally:
        for client in clients:
            client.reset()


# ------------------------------------------------------------- H6, H7: protocols, methods, hosts


@pytest.mark.parametrize(
    "data",
    (
        b"GET /v1/models HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n",
        (
            b"GET /v1/models HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
            b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n"
        ),
        (
            b"GET /v1/models HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ),
        b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
        b"TRACE /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
        b"get /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ),
    ids=("upgrade", "h2c", "websocket", "CONNECT", "TRACE", "lower case", "h2 preface"),
)
def test_nothing_is_tunnelled(gateway: Gateway, data: bytes) -> None:
    """H6: no upgrade, no tunnel, no echo: an ordinary answer or the end."""
    with RawClient(gateway.port, timeout_s=1) as client:
        client.send(data)
        try:
            answer = client.head()
        except (Closed, TimeoutError, AssertionError):
            return  # closed, or an HTTP/2 settings frame: a protocol we serve, with its own tests
        # The server tells a refused WebSocket which protocol it was; what counts is that none was opened.
        assert 400 <= answer.status < 500, answer.status
        assert answer.header("upgrade") is None or answer.status == 401


def test_head_is_a_get_without_its_body(gateway: Gateway) -> None:
    """H6: a page of the management answers HEAD, and the connection serves on behind it."""
    admin = [("X-Gateway-Cli-Token", gateway.cli_token)]
    with RawClient(gateway.port) as client:
        client.request("HEAD", "/api/keys", admin)
        answer = client.response(bodyless=True)
        assert answer.status == 200
        assert answer.header("content-type") == "application/json"
        client.request("GET", "/api/keys", admin)
        # The gateway is shared, and may be as young as this test: keys need not be there, their list must.
        assert isinstance(client.response().json()["keys"], list)


HOSTS = {
    "missing": b"GET /v1/models HTTP/1.1\r\n",
    "twice": b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: a\r\n",
    "two values": b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
    "empty": b"GET /v1/models HTTP/1.1\r\nHost:\r\n",
    **{
        name: b"GET /v1/models HTTP/1.1\r\nHost: " + value + b"\r\n"
        for name, value in {
            "a slash": b"a/b",
            "a question mark": b"a?b",
            "a hash": b"a#b",
            "a user": b"user@a",
            "a space": b"a b",
            "a list": b"a, b",
            "a port that is none": b"a:x",
            "a port too high": b"a:65536",
            "an open bracket": b"[::1",
            "a bare IPv6": b"::1",
            "a zone": b"[fe80::1%25eth0]",
            "not ASCII": b"\xc3\xa9",
        }.items()
    },
    "asterisk form": b"GET * HTTP/1.1\r\nHost: localhost\r\n",
}


@pytest.mark.one_node(reason="the balancer reads requests before a node does")
@pytest.mark.parametrize("start", HOSTS.values(), ids=HOSTS.keys())
def test_a_host_must_be_one_host(gateway: Gateway, start: bytes) -> None:
    """H7: refused before anything is routed, although the credential is good."""
    name, value = gateway.auth
    found, _ = answers_to(gateway.port, start + f"{name}: {value}\r\n\r\n".encode())
    assert [answer.status for answer in found] in ([400], [404], []), [
        answer.status for answer in found
    ]


@pytest.mark.parametrize(
    "host", ("localhost", "127.0.0.1:20128", "[::1]", "[::1]:20128", "gateway.example.com")
)
def test_good_hosts_pass(gateway: Gateway, host: str) -> None:
    with RawClient(gateway.port) as client:
        client.request("GET", "/v1/models", [("Host", host), gateway.auth])
        assert client.response().status == 200


# -------------------------------------------------------------- H9, H10: repeated headers, hop-by-hop headers


def test_a_listed_header_is_not_lost(gateway: Gateway, lane: Lane) -> None:
    """H10: `Connection` cannot make the gateway forget a credential, ours or the caller's."""
    listed = (
        "Connection",
        "keep-alive, authorization, x-fairlead-principal, x-fairlead-link, host, content-length",
    )
    with RawClient(gateway.port) as client:
        client.request("POST", CHAT, [gateway.auth, listed], chat_bytes(lane))
        assert client.response().status == 200
    assert lane.upstream.last.bearer == lane.secrets[0]
    admin = ("X-Gateway-Cli-Token", gateway.cli_token)
    with RawClient(gateway.port) as client:
        client.request("GET", "/api/keys", [admin, listed])
        assert client.response().status == 200
        client.request("GET", "/api/keys", [admin, ("Connection", "x-gateway-cli-token")])
        assert client.response().status == 200


@pytest.mark.parametrize(
    "claim",
    (
        [("X-Fairlead-Principal", '{"kind":"local","id":null,"scopes":["manage"]}')],
        [("x_fairlead_principal", '{"kind":"local","id":null,"scopes":["manage"]}')],
        [("X-Fairlead-Link", "guess"), ("X-Fairlead-Peer", "127.0.0.1")],
        [("X_Gateway_Cli_Token", "{token}")],
        [("X-Gateway-Cli-Token", "{token}"), ("X-Forwarded-For", "127.0.0.1")],
        [("X-Gateway-Cli-Token", "{token}"), ("Via", "1.1 proxy")],
        [("X-Gateway-Cli-Token", "{token}"), ("X-Gateway-Cli-Token", "{token}x")],
        [("Authorization", "Bearer {token}")],
        [("Cookie", "auth_token={token}")],
    ),
)
def test_nobody_becomes_somebody_by_claiming(
    gateway: Gateway, claim: list[tuple[str, str]]
) -> None:
    """H9, H10: internal headers from outside, underscore forms, tokens in the wrong place: 401."""
    headers = [
        (name, value.format(token=gateway.cli_token) if "{token}" in value else value)
        for name, value in claim
    ]
    with RawClient(gateway.port) as client:
        client.request("GET", "/api/keys", headers)
        answer = client.response()
    assert answer.status in {401, 403}, answer.body


def test_the_hyphened_session_header_wins(gateway: Gateway, lane: Lane) -> None:
    """H9: both spellings of one header: the request is served, and neither reaches the provider."""
    with RawClient(gateway.port) as client:
        headers = [gateway.auth, ("x_session_id", "two"), ("X-Session-Id", "one")]
        client.request("POST", CHAT, headers, chat_bytes(lane))
        assert client.response().status == 200
    names = {name.lower() for name, _ in lane.upstream.last.headers}
    assert not names & {"x_session_id", "x-session-id"}


def test_every_refusal_names_its_request(gateway: Gateway, lane: Lane) -> None:
    """G4: two refusals have two ids, and each carries the version."""
    first, second = ask(lane, messages=[]), ask(lane, messages=[])
    assert request_id(first) != request_id(second)
    assert first.header("x-gateway-version")
