"""Which middleware stands before agents, and how it reads a request."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import Request

from fairlead.calls.bearer import Bearer, BearerRefused
from fairlead.calls.caller import SCOPE_KEY, Caller, Principal
from fairlead.identity.introspection.middleware import (
    BearerMiddleware,
    OpenMiddleware,
    bearer_middleware,
    read_bearer,
)
from fairlead.settings import ServeFields

pytestmark = pytest.mark.anyio


def request(
    *headers: tuple[str, str], host: str = "127.0.0.1:20128", peer: str = "127.0.0.1"
) -> Request:
    caller = Caller(Principal("anonymous"), peer, "r", "http", host)
    raw = [(name.encode(), value.encode()) for name, value in headers]
    return Request({"type": "http", "method": "POST", "headers": raw, SCOPE_KEY: caller})


BEARER = Bearer("c", "c", frozenset({"agent:read"}), 2**31, None, (), "Bearer", {"active": True})


class Says:
    """An introspection that knows one token."""

    async def introspect(self, text: str) -> Bearer:
        if text != "good":
            raise BearerRefused("invalid", "no")
        return BEARER

    async def close(self) -> None:
        """Nothing."""


async def test_the_result_is_in_the_requests_context() -> None:
    asked = request(("authorization", "Bearer good"))
    assert await BearerMiddleware(Says()).admit(asked) is BEARER
    assert asked.state.bearer is BEARER
    refused = request(("authorization", "Bearer bad"))
    with pytest.raises(BearerRefused):
        await BearerMiddleware(Says()).admit(refused)
    assert not hasattr(refused.state, "bearer")


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], "missing"),
        ([("authorization", "")], "missing"),
        ([("authorization", "Bearer")], "missing"),
        ([("authorization", "Bearer a b")], "missing"),
        ([("authorization", "Basic good")], "missing"),
        ([("authorization", "Bearer good"), ("authorization", "Bearer good")], "missing"),
        ([("authorization", "Bearer a,b")], "invalid"),
        ([("authorization", f"Bearer {'x' * 4097}")], "invalid"),
    ],
)
def test_a_header_that_shows_no_token(headers: list[tuple[str, str]], reason: str) -> None:
    with pytest.raises(BearerRefused) as caught:
        read_bearer(request(*headers))
    assert caught.value.reason == reason


@pytest.mark.parametrize("value", ["Bearer a.b-c_~+/==", "bearer  x", "BEARER x"])
def test_a_header_that_does(value: str) -> None:
    assert read_bearer(request(("authorization", value))) == value.split()[1]


async def admitted(asked: Request, **settings: Any) -> bool:
    middleware = bearer_middleware(ServeFields(**settings), None)
    assert isinstance(middleware, OpenMiddleware)
    try:
        await middleware.admit(asked)
    except BearerRefused as refused:
        return refused.reason != "closed"
    return asked.state.bearer is None


async def test_without_tokens_this_machine_is_let_in_and_nobody_else() -> None:
    assert await admitted(request())
    assert await admitted(request(host="localhost"))
    assert await admitted(request(("origin", "http://127.0.0.1:20128")))
    assert not await admitted(request(("origin", "http://evil.example")))
    assert not await admitted(request(("origin", "null")))
    assert not await admitted(request(host="evil.example"))
    assert not await admitted(request(), host="0.0.0.0")
    assert await admitted(request(), host="0.0.0.0", allow_unauthenticated_bind=True)


@pytest.mark.parametrize(
    "name", ["x-forwarded-for", "x-forwarded-proto", "x-real-ip", "forwarded", "via", "cf-ray"]
)
async def test_without_tokens_whom_a_proxy_speaks_for_stays_outside(name: str) -> None:
    assert not await admitted(request((name, "192.0.2.9")))


async def test_without_tokens_a_gateway_that_others_reach_lets_nobody_in() -> None:
    """A proxy on loopback looks like this machine, with nginx's own `Host` and no header of its own."""
    assert not await admitted(request(), service_public_base_url="https://gw.example")
    assert not await admitted(request(), service_trust_proxy=True)
    assert await admitted(request(), service_public_base_url="http://localhost:20128")
    assert not await admitted(request(peer="192.0.2.9"))
    assert not await admitted(request(peer="unknown"))
    assert not await admitted(request(host="192.168.0.7:20128"))


def test_tokens_without_anybody_to_ask_are_a_defect() -> None:
    with pytest.raises(ValueError, match="issuer"):
        bearer_middleware(ServeFields(auth_enabled=True), None)
