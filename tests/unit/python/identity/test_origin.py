"""Under which address people reach the gateway: nothing that a stranger sends may choose it."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from fairlead.calls.caller import SCOPE_KEY, Caller, Principal
from fairlead.calls.origin import address_of, public_base, public_origin
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


PROXIES = ServeFields(service_trust_proxy=True, service_trusted_proxies=2)


@pytest.mark.parametrize(
    ("config", "lines", "expected"),
    [
        (PLAIN, ["2001:DB8::1"], "10.0.0.1"),
        (PROXY, ["2001:DB8::1"], "2001:db8::1"),
        # What stands left of the proxy's own word is the caller's invention.
        (PROXY, ["203.0.113.7, 198.51.100.1"], "198.51.100.1"),
        (PROXY, ["203.0.113.7", "198.51.100.1"], "198.51.100.1"),
        (PROXY, ["198.51.100.1:4711"], "198.51.100.1"),
        (PROXY, ["[2001:DB8::1]:4711"], "2001:db8::1"),
        (PROXY, ["::ffff:198.51.100.1"], "198.51.100.1"),
        (PROXY, ["me"], "10.0.0.1"),
        (PROXY, ["203.0.113.7, "], "10.0.0.1"),
        (PROXY, [], "10.0.0.1"),
        (PROXIES, ["203.0.113.7, 198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        (PROXIES, ["198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        (PROXIES, ["198.51.100.1"], "198.51.100.1"),
    ],
)
def test_limits_count_the_last_address_that_a_trusted_proxy_saw(
    config: ServeFields, lines: list[str], expected: str
) -> None:
    sent = request(*(("x-forwarded-for", line) for line in lines))
    assert address_of(sent, caller("x"), config) == expected


def of_caller(host: str | None, scheme: str, *headers: tuple[str, str]) -> Request:
    made = request(*headers)
    made.scope[SCOPE_KEY] = caller(host, scheme)
    return made


@pytest.mark.parametrize(
    ("config", "host", "scheme", "headers", "expected"),
    [
        (CONFIGURED, "evil.example", "http", FORWARDED, "https://gw.example/base"),
        (PLAIN, "127.0.0.1:20128", "http", FORWARDED, "http://127.0.0.1:20128"),
        (PLAIN, "box.lan:20128", "https", (), "https://box.lan:20128"),
        (PROXY, "127.0.0.1:20128", "http", FORWARDED, "https://gw.example"),
        (PROXY, "gw.example", "http", FORWARDED[:1], "https://gw.example"),
        (PROXY, "gw.example", "http", (), "http://gw.example"),
        (PROXY, "gw.example", "http", (FORWARDED[0], ("x-forwarded-host", "a/b")), None),
        (PLAIN, "a/b", "http", (), None),
        (PLAIN, None, "http", (), None),
    ],
)
def test_links_begin_with_the_address_that_the_reader_can_use(
    config: ServeFields,
    host: str | None,
    scheme: str,
    headers: tuple[tuple[str, str], ...],
    expected: str | None,
) -> None:
    found = public_base(config, of_caller(host, scheme, *headers))
    assert found == (expected or "http://127.0.0.1:20128")


def test_without_a_request_links_begin_with_what_the_settings_say() -> None:
    assert public_base(CONFIGURED) == "https://gw.example/base"
    assert public_base(ServeFields(port=1234)) == "http://127.0.0.1:1234"
