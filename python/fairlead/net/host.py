"""Hosts of URLs that callers gave, in one canonical spelling per address, so that the checked host is the
dialled one.

Every IPv4 spelling that C libraries understand becomes a dotted quad. Names are checked when they are resolved.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from urllib.parse import SplitResult

from fairlead.net.url import split_url

DEFAULT_PORTS = {"http": 80, "https": 443}

# Ports of services that speak first or act upon lines of text, into which an HTTP request must not be smuggled.
NOT_HTTP_PORTS = frozenset(
    {21, 22, 23, 25, 53, 110, 119, 143, 389, 465, 587, 993, 995, 6379, 11211}
)

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class AddressRefused(ValueError):
    """The reason why a URL or path is refused, worded to follow the field's name."""


def split_address(text: str, *, instead_of_login: str = "") -> SplitResult:
    """The parts of an http or https URL that has a host, no login and a port allowed for HTTP.

    `instead_of_login` is advice that is appended where a login is refused. Raises `AddressRefused`.
    """
    try:
        parts = split_url(text)
        port = parts.port
    except ValueError:
        raise AddressRefused("must be an http or https URL") from None
    if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
        raise AddressRefused("must be an http or https URL with a host")
    if "@" in parts.netloc:
        raise AddressRefused(f"must hold no user name or password{instead_of_login}")
    if port in NOT_HTTP_PORTS or port == 0:
        raise AddressRefused(f"must not have the port {port}, which is no HTTP service's")
    return parts


def spell_origin(parts: SplitResult, allowed: Callable[[str], str]) -> str:
    """`scheme://host[:port]` in canonical spelling; `allowed` checks a host that is an IP address."""
    port = parts.port
    host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    shown_port = "" if port in (None, DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{normalise_host(host, allowed)}{shown_port}"


def normalise_host(host: str, allowed: Callable[[str], str]) -> str:
    """A DNS name in lower case, a dotted quad or a bracketed IPv6 address.

    `allowed` returns the IP address that it is given, or raises `AddressRefused`, as this does for anything
    else.
    """
    if host.startswith("["):
        return f"[{allowed(_ipv6(host))}]"
    name = host.lower().removesuffix(".")
    last_label = name.rpartition(".")[2]
    if _NUMBER.fullmatch(last_label):
        # Resolvers read such a host as an IPv4 address in one of its odd spellings, so it is read that way here
        # or refused.
        return allowed(_ipv4(name))
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise AddressRefused(
            "must have a host that is a DNS name (ASCII form), an IPv4 or a bracketed IPv6 address"
        )
    return name


def is_loopback(host: str) -> bool:
    """Whether a host (without a port; IPv6 with or without brackets) is `localhost` or a loopback address."""
    name = host.removeprefix("[").removesuffix("]")
    try:
        return name.lower() == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _ipv4(text: str) -> str:
    try:
        return socket.inet_ntoa(socket.inet_aton(text))
    except OSError:
        raise AddressRefused("must have a host that is not a malformed IPv4 address") from None


def _ipv6(text: str) -> str:
    try:
        address = ipaddress.IPv6Address(text[1:].removesuffix("]"))
    except ValueError:
        raise AddressRefused("must have a host that is not a malformed IPv6 address") from None
    if not text.endswith("]") or address.scope_id is not None:
        raise AddressRefused("must have an IPv6 address in brackets and without a zone")
    return str(address)
