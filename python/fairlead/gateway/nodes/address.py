"""Base URLs and paths of providers: one spelling per address, and no address that must never be
dialled.

`normalise_base_url` is the only way a base URL gets into the database. What it lets through is
spelled in one way (every form of an IPv4 address that C libraries understand becomes a dotted
quad), so what is checked here is what is dialled later. Host names are judged again each time they
are resolved.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from fairlead import _core
from fairlead.host import NOT_HTTP_PORTS, AddressRefused, normalise_host
from fairlead.operator_egress import POLICY

MAX_URL_CHARS = 2048
MAX_PATH_CHARS = 256

_DEFAULT_PORTS = {"http": 80, "https": 443}

_PATH = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)*/*")


def normalise_base_url(text: str) -> str:
    """`http(s)://host[:port][/path]` without a trailing slash; `AddressRefused` for anything
    else.
    """
    if len(text) > MAX_URL_CHARS:
        raise AddressRefused(f"must have at most {MAX_URL_CHARS} characters")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise AddressRefused("must be printable ASCII without spaces and backslashes")
    if "?" in text or "#" in text:
        raise AddressRefused("must have neither query nor fragment")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise AddressRefused("must be an http or https URL") from None
    if parts.scheme not in _DEFAULT_PORTS or not parts.netloc:
        raise AddressRefused("must be an http or https URL with a host")
    if "@" in parts.netloc:
        raise AddressRefused("must hold no user name or password; send the key as apiKey")
    if port in NOT_HTTP_PORTS or port == 0:
        raise AddressRefused(f"must not have the port {port}, which is no HTTP service's")
    host = normalise_host(
        parts.netloc.rpartition(":")[0] if port is not None else parts.netloc, _allowed
    )
    shown_port = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown_port}{_normalise_path(parts.path)}"


def normalise_path(text: str) -> str:
    """`/path` below a base URL, without a trailing slash; `AddressRefused` for anything else."""
    if not text.startswith("/") or len(text) > MAX_PATH_CHARS:
        raise AddressRefused(
            f"must begin with a slash and have at most {MAX_PATH_CHARS} characters"
        )
    path = _normalise_path(text)
    if not path:
        raise AddressRefused("must name a path below the base URL")
    return path


def _normalise_path(path: str) -> str:
    if _PATH.fullmatch(path) is None:
        raise AddressRefused("must have a path of plain segments, each separated by one slash")
    if any(
        segment.replace("%2e", ".").replace("%2E", ".") in {".", ".."}
        for segment in path.split("/")
    ):
        raise AddressRefused("must have a path without `.` and `..`")
    return path.rstrip("/")


def _allowed(address: str) -> str:
    if not _core.address_allowed(address, POLICY):
        raise AddressRefused(
            f"must not be {address}: link-local, metadata and multicast addresses are never dialled"
        )
    return address
