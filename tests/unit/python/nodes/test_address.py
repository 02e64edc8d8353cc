"""A base URL has one spelling, and no spelling leads to an address that is never dialled."""

from __future__ import annotations

import ipaddress
import socket
import string
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import _core
from fairlead.gateway.nodes.address import (
    AddressRefused,
    normalise_base_url,
    normalise_path,
)

labels = st.from_regex(r"[a-z][a-z0-9-]{0,10}[a-z0-9]", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=4).map(".".join)
segments = st.text(
    string.ascii_letters + string.digits + "-_~!$&'()*+,;=:@", min_size=1, max_size=8
)
paths = st.lists(segments, max_size=4).map(lambda parts: "".join(f"/{part}" for part in parts))


def spellings(address: int) -> list[str]:
    """The ways in which C libraries read this IPv4 address."""
    a, b, c, d = address.to_bytes(4, "big")
    return [
        f"{a}.{b}.{c}.{d}",
        f"{a}.{b}.{c}.{d}.",
        f"{a}.{b}.{c << 8 | d}",
        f"{a}.{b << 16 | c << 8 | d}",
        str(address),
        hex(address),
        hex(address).upper().replace("X", "x"),
        f"0{address:o}",
        f"0x{a:x}.0{b:o}.{c}.0x{d:02x}",
        f"{a:#x}.{b << 16 | c << 8 | d:#x}",
    ]


@pytest.mark.parametrize(
    ("given_url", "kept"),
    [
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
        ("http://localhost:11434/v1///", "http://localhost:11434/v1"),
        ("HTTPS://API.Example.COM./v1/", "https://api.example.com/v1"),
        ("https://api.example.com:443", "https://api.example.com"),
        ("http://api.example.com:80/", "http://api.example.com"),
        ("http://api.example.com:443/", "http://api.example.com:443"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]"),
        ("http://10.0.0.5/a%2Fb", "http://10.0.0.5/a%2Fb"),
        ("http://my_model-server/v1", "http://my_model-server/v1"),
        ("http://10.1.2/v1", "http://10.1.0.2/v1"),
    ],
)
def test_one_spelling(given_url: str, kept: str) -> None:
    assert normalise_base_url(given_url) == kept


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "//host/v1",
        "http://",
        "http:///v1",
        "http:host",
        "ftp://host",
        "file:///etc/passwd",
        "gopher://host",
        "unix:///run/x.sock",
        "data:text/plain,x",
        "javascript:alert(1)",
        "http+unix://x",
        "http://user@host",
        "http://user:pass@host",
        "http://good.example@169.254.169.254",
        "http://@host",
        "http://host?x",
        "http://host/v1?key=1",
        "http://host/#",
        "http://host/v1#f",
        "http://ho st",
        "http://host/a b",
        "http://host\\@evil",
        "http://host/\\x",
        "http://ho\tst",
        "http://host\n",
        "\x00http://host",
        "http://host/\x7f",
        "http://höst",
        "http://exam。ple",
        "http://①②⑦.0.0.1",
        "http://host:0",
        "http://host:65536",
        "http://host:-1",
        "http://host:http",
        "http://host:22",
        "http://host:25",
        "http://host:6379",
        "http://host:",
        "http://host:80:80",
        "http://%31%32%37.0.0.1",
        "http://host%00",
        "http://ho*st",
        "http://-host",
        "http://host-",
        "http://a..b",
        "http://.",
        "http://host..",
        "http://" + "a" * 64,
        "http://" + ".".join(["abcdefgh"] * 32),
        "http://1.2.3.4.5",
        "http://256.1.1.1",
        "http://0x100000000",
        "http://4294967296",
        "http://09.1.1.1",
        "http://foo.0x1",
        "http://foo.1",
        "http://[::1",
        "http://::1",
        "http://[::1]x",
        "http://[fe80::1%25eth0]",
        "http://[::g]",
        "http://[1.2.3.4]",
        "http://host//v1",
        "http://host/./v1",
        "http://host/v1/../admin",
        "http://host/%2e%2E/x",
        "http://host/%zz",
        "http://host/" + "a" * 2048,
    ],
)
def test_what_is_no_base_url(url: str) -> None:
    with pytest.raises(AddressRefused):
        normalise_base_url(url)


@given(st.integers(0, 2**32 - 1))
def test_every_spelling_of_an_address_is_judged_as_that_address(address: int) -> None:
    plain = str(ipaddress.IPv4Address(address))
    for spelling in spellings(address):
        if _core.address_allowed(plain, "operator"):
            assert normalise_base_url(f"http://{spelling}/v1") == f"http://{plain}/v1"
        else:
            with pytest.raises(AddressRefused):
                normalise_base_url(f"http://{spelling}/v1")


@pytest.mark.parametrize(
    "plain", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255", "100.100.100.200"]
)
def test_no_spelling_reaches_what_is_never_dialled(plain: str) -> None:
    address = int(ipaddress.IPv4Address(plain))
    high, low = address >> 16, address & 0xFFFF
    for host in [
        *spellings(address),
        f"[::ffff:{plain}]",
        f"[::ffff:{high:x}:{low:x}]",
        f"[64:ff9b::{high:x}:{low:x}]",
        f"[2002:{high:x}:{low:x}::]",
    ]:
        with pytest.raises(AddressRefused):
            normalise_base_url(f"http://{host}/")


@pytest.mark.parametrize("host", ["[fe80::1]", "[ff02::1]", "[::]", "[fd00:ec2::254]"])
def test_ipv6_that_is_never_dialled(host: str) -> None:
    with pytest.raises(AddressRefused):
        normalise_base_url(f"https://{host}/v1")


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "192.168.0.9", "[::1]", "[fd12::1]"])
def test_an_operator_may_name_loopback_and_private_networks(host: str) -> None:
    assert normalise_base_url(f"http://{host}:8000") == f"http://{host}:8000"


@given(st.sampled_from(["http", "https"]), names, st.none() | st.integers(1024, 65535), paths)
def test_normalising_twice_changes_nothing(
    scheme: str, name: str, port: int | None, path: str
) -> None:
    shown_port = "" if port is None else f":{port}"
    try:
        url = normalise_base_url(f"{scheme}://{name}{shown_port}{path}")
    except AddressRefused:
        assert port in {11211, 6379} or "/." in path
        return

    assert normalise_base_url(url) == url
    assert (urlsplit(url).hostname, urlsplit(url).port) == (name, port)


@given(st.text(max_size=40))
def test_anything_is_taken_or_refused_in_words(text: str) -> None:
    for url in (text, f"http://{text}", f"http://{text}/v1", f"http://host/{text}"):
        try:
            kept = normalise_base_url(url)
        except AddressRefused as error:
            words = str(error)
            assert words.startswith("must")
            continue
        host = urlsplit(kept).hostname or ""
        assert host == host.lower()
        assert "@" not in kept.split("/")[2]
        # What a resolver would take for an address is spelled as one.
        try:
            assert socket.inet_ntoa(socket.inet_aton(host)) == host
        except OSError:
            assert not host.replace(".", "").isdigit()


@pytest.mark.parametrize("path", ["/chat", "/v2/chat/completions", "/a.b/~c"])
def test_paths(path: str) -> None:
    assert normalise_path(f"{path}/") == path


@pytest.mark.parametrize("path", ["", "/", "chat", "//x", "/a?b", "/../x", "/a b", "/" + "a" * 300])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(AddressRefused):
        normalise_path(path)
