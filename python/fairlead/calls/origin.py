"""The gateway's own public origin, and the address of a caller.

Settings, socket and proxy headers are weighed in this one place, so that links in answers, limits by address
and routes reserved for this machine go by one rule.

The public origin is the first of these that holds; if none does, there is none, so that a caller cannot name
the gateway to mislead others.

1. `SERVICE_PUBLIC_BASE_URL`.
2. The caller came by https to this process: `Host`.
3. `SERVICE_TRUST_PROXY`: exactly one `X-Forwarded-Proto: https` (or, without that header, one
   `CF-Visitor` that says so) and one `X-Forwarded-Host`.
4. The caller came by http to a loopback `Host`.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable
from typing import Final

from starlette.requests import Request

from fairlead.calls.caller import Caller, caller_of
from fairlead.net.host import is_loopback
from fairlead.net.url import split_url
from fairlead.settings import ServeFields

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")

# Headers that proxies and content networks add, besides `X-Forwarded-*`.
_PROXY_HEADERS: Final = (
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "cf-visitor",
    "cf-ray",
    "fastly-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-original-host",
    "x-original-url",
)


def public_base(config: ServeFields, request: Request | None = None) -> str:
    """The base of links in answers, events and tokens, without a trailing slash.

    `SERVICE_PUBLIC_BASE_URL`; else, for a response, the origin from a trusted proxy or the one that the caller
    used; else the relay's own address on this machine.
    """
    if config.service_public_base_url is not None:
        return config.service_public_base_url.rstrip("/")
    called = None if request is None else _called(request, caller_of(request), config)
    return called or config.relay_own_url


def own_bases(config: ServeFields) -> frozenset[str]:
    """The base URLs by which a token may name this gateway.

    `SERVICE_PUBLIC_BASE_URL`, else the listening address under each name of this machine.
    """
    base = public_base(config)
    if config.service_public_base_url is not None or not config.is_loopback:
        return frozenset({base})
    parts = split_url(base)
    names = ("localhost", "127.0.0.1", "[::1]")
    return frozenset({base, *(f"{parts.scheme}://{name}:{config.port}" for name in names)})


def _called(request: Request, caller: Caller, config: ServeFields) -> str | None:
    """The origin that the caller used. It is unverified, but goes back to this caller only."""
    if config.service_trust_proxy and caller.scheme != "https":
        host = _only(request, "x-forwarded-host") or caller.host
        scheme = "https" if _is_forwarded_https(request) else "http"
        return f"{scheme}://{host}" if _is_host(host) else None
    return f"{caller.scheme}://{caller.host}" if _is_host(caller.host) else None


def public_origin(request: Request, caller: Caller, config: ServeFields) -> str | None:
    """`scheme://host[:port]` in lower case, or None when no trustworthy source names it."""
    origin = _named_origin(request, caller, config)
    return None if origin is None else origin.lower()


def _named_origin(request: Request, caller: Caller, config: ServeFields) -> str | None:
    if config.service_public_base_url is not None:
        parts = split_url(config.service_public_base_url)
        return f"{parts.scheme}://{parts.netloc}"
    if caller.scheme == "https":
        return f"https://{caller.host}" if _is_host(caller.host) else None
    if config.service_trust_proxy:
        host = _only(request, "x-forwarded-host")
        return f"https://{host}" if _is_forwarded_https(request) and _is_host(host) else None
    return f"http://{caller.host}" if _is_loopback(caller.host) else None


def is_own_page(request: Request, caller: Caller, config: ServeFields) -> bool:
    """Whether a request without a credential comes from a page of the gateway, or from no page.

    By DNS rebinding, a foreign page may point its own name at this machine and share its origin. So the name
    must be a trusted one, or an IP address.
    """
    known = {public_origin(request, caller, config)} - {None}
    if caller.host is not None and _is_address(caller.host):
        known.add(f"{caller.scheme}://{caller.host}")
    origin = request.headers.get("origin")
    return bool(known) if origin is None else origin in known


def is_for_others(config: ServeFields) -> bool:
    """Whether the gateway is configured for callers beyond this machine: by its address, or by a proxy, behind
    which every caller appears local.
    """
    base = config.service_public_base_url
    return (
        not config.is_loopback
        or config.service_trust_proxy
        or (base is not None and not _is_loopback(split_url(base).netloc))
    )


def is_on_this_machine(request: Request, caller: Caller, config: ServeFields) -> bool:
    """Whether the request comes from a program or an own page on this machine, and not through a proxy on it.

    A loopback peer alone proves little, since a local proxy makes every caller look like that. So neither
    settings nor headers may point at a proxy, and the gateway must be called by a loopback name, which a proxy
    that forwards its caller's `Host` does not do.
    """
    if is_for_others(config) or is_proxied(request):
        return False
    try:
        is_near = ipaddress.ip_address(caller.peer).is_loopback
    except ValueError:
        return False
    return is_near and _is_loopback(caller.host) and is_own_page(request, caller, config)


def is_proxied(request: Request) -> bool:
    """Whether a header says that a proxy forwarded this request."""
    return any(
        name in _PROXY_HEADERS or name.startswith("x-forwarded-") for name in request.headers
    )


def is_https(request: Request, caller: Caller, config: ServeFields) -> bool:
    """Whether the caller's side of the connection is https, so that cookies may be `Secure`."""
    if caller.scheme == "https":
        return True
    return config.service_trust_proxy and _is_forwarded_https(request)


def address_of(request: Request, caller: Caller, config: ServeFields) -> str:
    """The caller's address that limits count: the socket's peer, or the one that the trusted proxies saw.

    Each proxy appends the address that it was called from at the right. With `SERVICE_TRUSTED_PROXIES` = n, the
    nth address from the right is the last one that a trusted proxy wrote; everything left of it is the caller's
    own claim.
    """
    if not config.service_trust_proxy:
        return caller.peer
    lines = request.headers.getlist("x-forwarded-for")
    return forwarded_address(lines, config.service_trusted_proxies) or caller.peer


def forwarded_address(lines: Iterable[str], trusted_proxies: int) -> str | None:
    """The address that the outermost of `trusted_proxies` proxies saw, from the lines of `X-Forwarded-For`.

    The leftmost address if the header has fewer; None if that is no address.
    """
    hops = [hop.strip() for line in lines for hop in line.split(",")]
    if not hops or trusted_proxies == 0:
        return None
    return _hop_address(hops[max(0, len(hops) - trusted_proxies)])


def _hop_address(hop: str) -> str | None:
    """The address of `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`."""
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    try:
        address = ipaddress.ip_address(hop)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _is_forwarded_https(request: Request) -> bool:
    if "x-forwarded-proto" in request.headers:
        return _only(request, "x-forwarded-proto") == "https"
    visitors = request.headers.getlist("cf-visitor")
    try:
        visitor = json.loads(visitors[0]) if len(visitors) == 1 else None
    except (ValueError, RecursionError):
        return False
    return isinstance(visitor, dict) and visitor.get("scheme") == "https"


def _only(request: Request, name: str) -> str | None:
    values = request.headers.getlist(name)
    return values[0] if len(values) == 1 and "," not in values[0] else None


def _is_host(text: str | None) -> bool:
    if text is None or _HOST.fullmatch(text) is None:
        return False
    port = text.rpartition(":")[2] if re.search(r":[0-9]+$", text) else "1"
    return 1 <= int(port) <= 65535


def _is_address(host: str) -> bool:
    if not _is_host(host):
        return False
    try:
        ipaddress.ip_address(split_url(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True


def _is_loopback(host: str | None) -> bool:
    """Whether a `Host` header, with or without a port, is a loopback name."""
    return _is_host(host) and is_loopback(split_url(f"//{host}").hostname or "")
