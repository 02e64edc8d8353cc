"""Under which address people reach the gateway: nothing that a stranger sends may choose it."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from fairlead.caller import Caller, Principal
from fairlead.identity.origin import address_of, public_origin
from fairlead.settings import ServeFields

PROXY = ServeFields(service_trust_proxy=True)
CONFIGURED = ServeFields(service_public_base_url="https://gw.example/base/")
PLAIN = ServeFields()


def request(*headers: tuple[str, str]) -> Request:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    return Request({"type": "http", "headers": raw})


def caller(host: str | None, scheme: str = "http") -> Caller:
    return Caller(Principal("anonymous"), "10.0.0.1", "r", scheme, host)


FORWARDED = (("x-forwarded-proto", "https"), ("x-forwarded-host", "gw.example"))
LADDER = [
    (CONFIGURED, "evil.example", "http", (), "https://gw.example"),
    (PLAIN, "gw.example:8443", "https", (), "https://gw.example:8443"),
    (PLAIN, "gw.example:0", "https", (), None),
    (PLAIN, "gw.example:70000", "https", (), None),
    (PLAIN, "u@gw.example", "https", (), None),
    (PLAIN, None, "https", (), None),
    (PLAIN, "localhost:20128", "http", (), "http://localhost:20128"),
    (PLAIN, "127.0.0.9:1", "http", (), "http://127.0.0.9:1"),
    (PLAIN, "[::1]:20128", "http", (), "http://[::1]:20128"),
    (PLAIN, "192.168.1.2", "http", (), None),
    (PLAIN, "localhost.evil.example", "http", (), None),
    (PLAIN, "127.0.0.1.evil.example", "http", (), None),
    (PLAIN, "gw.example", "http", FORWARDED, None),
    (PROXY, "127.0.0.1:20128", "http", FORWARDED, "https://gw.example"),
    (PROXY, "127.0.0.1:20128", "http", (), None),
    (PROXY, "gw.example", "http", FORWARDED[:1], None),
    (PROXY, "gw.example", "http", FORWARDED[1:], None),
    (PROXY, "x", "http", (*FORWARDED, ("x-forwarded-host", "b")), None),
    (PROXY, "x", "http", (FORWARDED[0], ("x-forwarded-host", "a, b")), None),
    (PROXY, "x", "http", (FORWARDED[0], ("x-forwarded-host", "a/b")), None),
    (PROXY, "x", "http", (("x-forwarded-proto", "https,http"), FORWARDED[1]), None),
]


@pytest.mark.parametrize(("config", "host", "scheme", "headers", "expected"), LADDER)
def test_the_first_trustworthy_source_names_the_origin(
    config: ServeFields,
    host: str | None,
    scheme: str,
    headers: tuple[tuple[str, str], ...],
    expected: str | None,
) -> None:
    assert public_origin(request(*headers), caller(host, scheme), config) == expected


def test_a_caller_names_itself_only_through_a_trusted_proxy() -> None:
    sent = request(("x-forwarded-for", "2001:DB8::1, 10.9.9.9"))
    assert address_of(sent, caller("x"), PLAIN) == "10.0.0.1"
    assert address_of(sent, caller("x"), PROXY) == "2001:db8::1"
    assert address_of(request(("x-forwarded-for", "me")), caller("x"), PROXY) == "10.0.0.1"
    assert address_of(request(), caller("x"), PROXY) == "10.0.0.1"
