"""Revisions of the protocol, and which one a request is in.

Up to 2025-11-25 a client begins with `initialize` and names the revision in a header from then on.
2026-07-28 has no beginning: each request names its revision, its method and its target in headers
and in `_meta`, and the two must agree. Neither has a session here: no message depends on another.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from fairlead.mcp.message import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    UNSUPPORTED_PROTOCOL_VERSION,
    Notification,
    Request,
    RpcError,
)

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
SUPPORTED = (*HANDSHAKE, STATELESS)
# The revision of a request without the header.
ASSUMED = "2025-03-26"

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"

_META = "io.modelcontextprotocol/"
META_VERSION = f"{_META}protocolVersion"
META_CAPABILITIES = f"{_META}clientCapabilities"
META_SERVER = f"{_META}serverInfo"

# The method whose target a request's header repeats, and the parameter of that target.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def revision_of(message: Request | Notification, headers: Mapping[str, list[str]]) -> str:
    """The revision that a message is in. `headers` has every line of a header, by its name in small
    letters. `RpcError` for one that is not served, and for a request that contradicts itself.
    """
    for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER):
        if len(headers.get(name, ())) > 1:
            raise RpcError(HEADER_MISMATCH, f"{name} must be sent exactly once.")
    named = _one(headers, VERSION_HEADER)
    meta = message.params.get("_meta")
    inside = meta.get(META_VERSION) if isinstance(meta, dict) else None
    if named is None and inside is None and message.method != "server/discover":
        return ASSUMED
    if named in HANDSHAKE and inside is None:
        return str(named)
    if isinstance(message, Notification):
        if named not in SUPPORTED:
            raise unsupported(named)
        return str(named)
    _check_stateless(message, headers, named)
    if inside != STATELESS:
        raise unsupported(inside)
    return STATELESS


def unsupported(requested: object) -> RpcError:
    """The response to an unsupported revision."""
    return RpcError(
        UNSUPPORTED_PROTOCOL_VERSION,
        "Unsupported protocol version",
        {"supported": list(SUPPORTED), "requested": str(requested)[:64]},
    )


def _check_stateless(message: Request, headers: Mapping[str, list[str]], named: str | None) -> None:
    meta = message.params.get("_meta")
    if not isinstance(meta, dict):
        if named is not None and named not in SUPPORTED:
            raise unsupported(named)
        raise RpcError(INVALID_PARAMS, f"params._meta must hold {META_VERSION}.")
    for key in (META_VERSION, META_CAPABILITIES):
        if key not in meta:
            raise RpcError(INVALID_PARAMS, f"params._meta must hold {key}.")
    if not isinstance(meta[META_CAPABILITIES], dict):
        raise RpcError(INVALID_PARAMS, f"{META_CAPABILITIES} must be an object.")
    if named is None or named != meta[META_VERSION]:
        raise RpcError(HEADER_MISMATCH, f"{VERSION_HEADER} must equal {META_VERSION}.")
    if _one(headers, METHOD_HEADER) != message.method:
        raise RpcError(HEADER_MISMATCH, f"{METHOD_HEADER} must be the method of the message.")
    target = NAMED.get(message.method)
    if target is not None:
        value: Any = message.params.get(target)
        shown = _one(headers, NAME_HEADER)
        if value is not None and (shown is None or decode_header(shown) != value):
            raise RpcError(HEADER_MISMATCH, f"{NAME_HEADER} must equal params.{target}.")


def decode_header(value: str) -> str | None:
    """The text of a header; `=?base64?...?=` holds what a header cannot. None for a broken one."""
    match = re.fullmatch(r"=\?base64\?(.*)\?=", value)
    if match is None:
        return value
    try:
        raw = base64.b64decode(match[1], validate=True)
        text = raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if base64.b64encode(raw).decode() == match[1] else None


def _one(headers: Mapping[str, list[str]], name: str) -> str | None:
    lines = headers.get(name, [])
    return lines[0].strip() if lines else None
