"""Under which address people reach the gateway, and from which address they come.

What a caller sends may only name the gateway where nobody is misled by it: the first of these that
holds is the gateway's origin, and if none does there is none.

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
from urllib.parse import urlsplit

from starlette.requests import Request

from fairlead.caller import Caller
from fairlead.settings import ServeFields

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


def public_origin(request: Request, caller: Caller, config: ServeFields) -> str | None:
    """`scheme://host[:port]` in lower case, or None when nothing trustworthy says it."""
    origin = _named_origin(request, caller, config)
    return None if origin is None else origin.lower()


def _named_origin(request: Request, caller: Caller, config: ServeFields) -> str | None:
    if config.service_public_base_url is not None:
        parts = urlsplit(config.service_public_base_url)
        return f"{parts.scheme}://{parts.netloc}"
    if caller.scheme == "https":
        return f"https://{caller.host}" if _is_host(caller.host) else None
    if config.service_trust_proxy:
        host = _only(request, "x-forwarded-host")
        return f"https://{host}" if _is_forwarded_https(request) and _is_host(host) else None
    return f"http://{caller.host}" if _is_loopback(caller.host) else None


def is_own_page(request: Request, caller: Caller, config: ServeFields) -> bool:
    """Whether a request that needs no credential comes from a page of ours, or from no page.

    A foreign page may give this machine a name of its own (DNS rebinding) and is of one origin with
    us then. So the name must be one that we trust, or an address.
    """
    known = {public_origin(request, caller, config)} - {None}
    if caller.host is not None and _is_address(caller.host):
        known.add(f"{caller.scheme}://{caller.host}")
    origin = request.headers.get("origin")
    return bool(known) if origin is None else origin in known


def is_https(request: Request, caller: Caller, config: ServeFields) -> bool:
    """Whether the caller's own end of the way is https, so that cookies may be `Secure`."""
    if caller.scheme == "https":
        return True
    return config.service_trust_proxy and _is_forwarded_https(request)


def address_of(request: Request, caller: Caller, config: ServeFields) -> str:
    """Whom limits count: the socket's other end, or the first hop that a trusted proxy names."""
    if config.service_trust_proxy:
        first = request.headers.get("x-forwarded-for", "").partition(",")[0].strip()
        try:
            return str(ipaddress.ip_address(first))
        except ValueError:
            return caller.peer
    return caller.peer


def _is_forwarded_https(request: Request) -> bool:
    if "x-forwarded-proto" in request.headers:
        return _only(request, "x-forwarded-proto") == "https"
    visitors = request.headers.getlist("cf-visitor")
    try:
        said = json.loads(visitors[0]) if len(visitors) == 1 else None
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("scheme") == "https"


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
        ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True


def _is_loopback(host: str | None) -> bool:
    if not _is_host(host):
        return False
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
