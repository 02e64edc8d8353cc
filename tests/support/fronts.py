"""Requests that are sent to both fronts, and the comparison of their responses."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from tests.support.chat import CHAT
from tests.support.processes import Gateway, Lane
from tests.support.raw import Closed, RawClient, RawResponse, request_bytes

_ANY: Final = b"*"
# What is new with every answer: moments, and ids that are drawn.
_NEW_HEADERS: Final = {
    "date",
    "etag",
    "x-gateway-latency-ms",
    "x-gateway-request-id",
    "x-gateway-response-latency",
}
_LATENCY: Final = re.compile(r"latency_ms=\d+")
# Whether the end of a body that is made in pieces was known when its head went out is a matter of the moment, and with
# granian so is whether an answer that ends its connection because of an unread body says so.
_FRAMING: Final = {"connection", "content-length", "transfer-encoding"}
# granian adds its name to what it sends; nothing of ours does.
_GRANIANS_NAME: Final = ("server", "granian")
_NEW_IN_BODIES: Final = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    rb"|\b(?:req|gen|chatcmpl|msg|resp)_[0-9A-Za-z]{16,}"
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)"
    rb'|(?<="created":)\d{10}|(?<="created": )\d{10}'
)
PING: Final = request_bytes("GET", "/healthz")


@dataclass(frozen=True)
class RawRequest:
    """Bytes to send, and how to read what comes."""

    data: bytes
    bodyless: bool = False
    answers: int = 1
    """How many answers there are, for requests that are sent in a row."""
    is_framed_freely: bool = False
    """What its head says of its end differs from time to time, and is left out of the comparison."""


@dataclass(frozen=True)
class Observation:
    """The parts of a response that a caller can see, which must be equal on both fronts."""

    status: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    stays: bool
    """Whether the connection serves a further request."""
    problem: str = ""


@dataclass
class RequestBuilder:
    """Collects requests; keys and models are those of one data directory."""

    gateway: Gateway
    lane: Lane
    requests: dict[str, RawRequest] = field(default_factory=dict)

    def add(
        self,
        name: str,
        method: str,
        target: str,
        body: Any = None,
        *headers: tuple[str, str],
        key: bool = True,
    ) -> None:
        """A well-formed request; `body` is bytes or becomes JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = [self.gateway.auth, *headers] if key else list(headers)
        self.raw(name, request_bytes(method, target, given, data), bodyless=method == "HEAD")

    def raw(self, name: str, data: bytes, *, bodyless: bool = False, answers: int = 1) -> None:
        assert name not in self.requests
        self.requests[name] = RawRequest(data, bodyless, answers)

    def frame_freely(self, name: str) -> None:
        self.requests[name] = replace(self.requests[name], is_framed_freely=True)


def requests_of(
    gateway: Gateway, lane: Lane, streams: Lane, failing: dict[str, tuple[Lane, Lane]]
) -> dict[str, RawRequest]:
    """Every kind of answer that a caller can be given.

    `lane` answers plainly, `streams` in events; `failing` has a lane for each way to fail, plain and streamed.
    """
    builder = RequestBuilder(gateway, lane)
    _conversations(builder, streams)
    for what, (plain, streamed) in failing.items():
        builder.add(what, "POST", CHAT, plain.body())
        builder.add(f"{what}, streamed", "POST", CHAT, streamed.body(stream=True))
    _refusals(builder)
    _pages(builder)
    _framing(builder)
    return builder.requests


def _conversations(builder: RequestBuilder, streams: Lane) -> None:
    chat = builder.lane.body
    told = {"include_usage": True}
    builder.add("a plain answer", "POST", CHAT, chat())
    builder.add("a stream", "POST", CHAT, streams.body(stream=True))
    builder.add("a stream's usage", "POST", CHAT, streams.body(stream=True, stream_options=told))
    talk = {**chat(), "max_tokens": 16}
    flowing = {**streams.body(stream=True), "max_tokens": 16}
    builder.add("Anthropic's plain answer", "POST", "/v1/messages", talk)
    builder.add("Anthropic's stream", "POST", "/v1/messages", flowing)
    contents = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    at = f"/v1beta/models/{builder.lane.model}"
    builder.add("Gemini's plain answer", "POST", f"{at}:generateContent", contents)
    at = f"/v1beta/models/{streams.model}"
    builder.add("Gemini's stream", "POST", f"{at}:streamGenerateContent?alt=sse", contents)
    builder.add("Gemini's array", "POST", f"{at}:streamGenerateContent", contents)
    builder.frame_freely("Gemini's array")
    builder.add("a count", "POST", "/v1/messages/count_tokens", talk)
    coding = ("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")
    begin = request_bytes("POST", CHAT, [builder.gateway.auth, *coding])
    whole = json.dumps(chat()).encode()
    builder.raw("a chunked request", begin + b"%x\r\n%s\r\n0\r\n\r\n" % (len(whole), whole))
    builder.raw(
        "chunks with trailers",
        begin
        + b"5;a=b\r\n%s\r\n%x\r\n%s\r\n0\r\nX-Late: 1\r\n\r\n"
        % (whole[:5], len(whole) - 5, whole[5:]),
    )


def _refusals(builder: RequestBuilder) -> None:
    chat, model = builder.lane.body, builder.lane.model
    shapes = {
        "OpenAI": CHAT,
        "Anthropic": "/v1/messages",
        "Gemini": f"/v1beta/models/{model}:generateContent",
        "management": "/api/keys",
    }
    for who, path in shapes.items():
        builder.add(f"{who}: no key", "POST", path, chat(), key=False)
        wrong = ("Authorization", "Bearer sk-fl-wrong")
        builder.add(f"{who}: a wrong key", "POST", path, chat(), wrong, key=False)
        builder.add(f"{who}: no JSON", "POST", path, b"{no")
        builder.add(f"{who}: another type", "POST", path, b"a=b", ("Content-Type", "text/plain"))
        builder.add(f"{who}: another method", "PATCH", path, chat())
        builder.add(f"{who}: an empty body", "POST", path, b"")
        # Nothing of it is sent: the refusal goes ahead of the body.
        size = ("Content-Length", str(600 * 2**20))
        kind = ("Content-Type", "application/json")
        builder.add(f"{who}: too much", "POST", path, None, size, kind)
        builder.frame_freely(f"{who}: too much")
    builder.add("no such model", "POST", CHAT, chat(model="nobody/nothing"))
    builder.add("Anthropic: no such model", "POST", "/v1/messages", chat(model="nobody/nothing"))
    builder.add("Gemini: no such model", "POST", "/v1beta/models/nobody/no:generateContent", {})
    builder.add("no messages", "POST", CHAT, {"model": model})
    deep = b'{"model":"m","messages":' + b"[" * 300 + b"]" * 300 + b"}"
    builder.add("too deep", "POST", CHAT, deep)
    builder.add("no such route", "GET", "/v1/nothing")
    builder.add("no such route, no key", "GET", "/v1/nothing", key=False)
    builder.add("no such page", "GET", "/nothing")
    builder.add("no such management route", "GET", "/api/nothing")
    for name in ("/V1/models", "//v1/models", "/v1/%6dodels", "/v1/models/", "/v1/../v1/models"):
        builder.add(f"a path beside it: {name}", "GET", name)
    builder.add("a target of 9 kB", "GET", "/v1/models?x=" + "y" * 9216)
    builder.add("a target of 64 kB", "GET", "/v1/models?x=" + "y" * 65536)
    builder.add("a big header", "GET", "/v1/models", None, ("X-Big", "y" * 33 * 1024))
    builder.add("101 headers", "GET", "/v1/models", None, *((f"X-{n}", "y") for n in range(100)))


def _pages(builder: RequestBuilder) -> None:
    local = ("X-Gateway-Cli-Token", builder.gateway.cli_token)
    for method in ("GET", "HEAD", "OPTIONS", "DELETE"):
        for path in ("/healthz", "/v1/models", "/v1beta/models", "/v1/nothing", CHAT):
            builder.add(f"{method} {path}", method, path)
    builder.add("one model", "GET", f"/v1/models/{builder.lane.model}")
    builder.add("HEAD of one model", "HEAD", f"/v1/models/{builder.lane.model}")
    builder.add(
        "a browser asks first",
        "OPTIONS",
        CHAT,
        None,
        ("Origin", "https://app.example"),
        ("Access-Control-Request-Method", "POST"),
        key=False,
    )
    for path in ("/api/keys", "/api/combos", "/api/nothing", "/api/settings"):
        builder.add(f"management {path}", "GET", path, None, local, key=False)
        builder.add(f"management HEAD {path}", "HEAD", path, None, local, key=False)
    for path in (
        "/",
        "/dashboard",
        "/login",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource",
        "/.well-known/agent.json",
        "/oauth/nothing",
        "/mcp/rpc",
        "/openapi.json",
        "/dashboard/static/nothing.css",
    ):
        builder.add(f"a page: {path}", "GET", path, key=False)
        builder.add(f"a page's head: {path}", "HEAD", path, key=False)
    builder.add(
        "a form to control",
        "POST",
        "/oauth/token",
        b"grant_type=none",
        ("Content-Type", "application/x-www-form-urlencoded"),
        key=False,
    )
    builder.add("a tool call", "POST", "/mcp/rpc", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    builder.add("a refused field", "POST", "/api/keys", {"nonsense": 1}, local, key=False)
    builder.add("no socket asked for", "GET", "/v1/ws")


def _framing(builder: RequestBuilder) -> None:
    name, value = builder.gateway.auth
    key = f"{name}: {value}\r\n".encode()
    models, end = b"GET /v1/models HTTP/1.1\r\n", b"\r\n"
    heads = {
        "HTTP/1.0": b"GET /v1/models HTTP/1.0\r\nHost: localhost\r\n",
        "HTTP/1.0 without a host": b"GET /v1/models HTTP/1.0\r\n",
        "HTTP/1.0 kept": b"GET /v1/models HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n",
        "HTTP/1.2": b"GET /v1/models HTTP/1.2\r\nHost: localhost\r\n",
        "close": models + b"Host: localhost\r\nConnection: close\r\n",
        "no host": models,
        "two hosts": models + b"Host: a\r\nHost: b\r\n",
        "an empty host": models + b"Host:\r\n",
        "a host with a path": models + b"Host: a/b\r\n",
        "a host with a user": models + b"Host: u@a\r\n",
        "absolute form": b"GET http://localhost/v1/models HTTP/1.1\r\nHost: localhost\r\n",
        "absolute form, another host": b"GET http://a/v1/models HTTP/1.1\r\nHost: b\r\n",
        "asterisk form": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n",
        "no slash": b"GET v1/models HTTP/1.1\r\nHost: localhost\r\n",
        "CONNECT": b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n",
        "TRACE": b"TRACE /v1/models HTTP/1.1\r\nHost: localhost\r\n",
        "a method of its own": b"BREW /v1/models HTTP/1.1\r\nHost: localhost\r\n",
        "a lower-case method": b"get /v1/models HTTP/1.1\r\nHost: localhost\r\n",
        "a space before the colon": models + b"Host: localhost\r\nX-A : 1\r\n",
        "a folded header": models + b"Host: localhost\r\nX-A: 1\r\n 2\r\n",
        "a zero byte": models + b"Host: localhost\r\nX-A: \x001\r\n",
        "a bare newline": b"GET /v1/models HTTP/1.1\nHost: localhost\n",
        "length and chunks": b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "two lengths": b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
        b"Content-Length: 4\r\nContent-Length: 5\r\n",
        "a length with a sign": b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
        b"Content-Length: +4\r\n",
        "an unknown coding": b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
        b"Transfer-Encoding: gzip\r\n",
        "an upgrade to nothing": models + b"Host: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n",
    }
    for what, start in heads.items():
        builder.raw(what, start + key + end)
    builder.raw("two in a row", (models + b"Host: a\r\n" + key + end) * 2, answers=2)
    builder.raw(
        "no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32) + end * 2
    )


def observe(port: int, ask: RawRequest) -> Observation:
    """Sends it on a connection of its own. What the answer says is kept but for what is new with each."""
    with RawClient(port, timeout_s=20) as client:
        client.send(ask.data)
        observed: list[RawResponse] = []
        problem = ""
        try:
            while len(observed) < ask.answers:
                observed.append(client.response(bodyless=ask.bodyless))
        except Closed as closed:
            problem = f"{closed.kind} {len(closed.rest)}"
        except (AssertionError, ValueError) as wrong:
            problem = f"broken framing: {wrong}"
        stays = False
        if not problem:
            with contextlib.suppress(Closed, ConnectionError, TimeoutError, AssertionError):
                client.socket.settimeout(5)
                client.send(PING)
                stays = client.response().status == 200
    if not observed:
        return Observation("none", (), b"", stays, problem)
    return Observation(
        " ".join(f"{one.status} {one.reason}" for one in observed),
        tuple(
            sorted(
                _kept(name.lower(), value)
                for one in observed
                for name, value in one.headers
                if (name.lower(), value) != _GRANIANS_NAME
                and not (ask.is_framed_freely and name.lower() in _FRAMING)
            )
        ),
        b"".join(_NEW_IN_BODIES.sub(_ANY, one.body) for one in observed),
        stays,
        problem,
    )


def _kept(name: str, value: str) -> tuple[str, str]:
    return (name, "*") if name in _NEW_HEADERS else (name, _LATENCY.sub("latency_ms=*", value))


def difference(one: Observation, other: Observation) -> list[str]:
    """What differs, part by part; empty where nothing does."""
    return [
        f"{part.name}: {getattr(one, part.name)!r} | {getattr(other, part.name)!r}"
        for part in fields(Observation)
        if getattr(one, part.name) != getattr(other, part.name)
    ]
