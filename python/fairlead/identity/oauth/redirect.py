"""Redirect URIs: the rules of registration, the comparison, and the address with an answer in it."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, quote

from fairlead.net.host import is_loopback
from fairlead.net.url import split_url

MAX_BYTES = 2048

# Browsers must read the address as we do.
_UNCLEAR = re.compile(r'[\x00-\x20\x7f\\<>"^`{|}\u2028\u2029]')
_HOST = re.compile(r"[\w.~-]+")
_SAFE = "!#$%&'()*+,/:;=?@[]~"


def redirect_fault(uri: str) -> str | None:
    """The reason why this cannot be registered, or None: it must be an absolute https address, or
    http of this machine, without user and fragment.
    """
    if len(uri.encode("utf-8", "replace")) > MAX_BYTES:
        return f"the redirect URI is longer than {MAX_BYTES} bytes"
    if _UNCLEAR.search(uri) or not uri.isprintable() or "#" in uri:
        return "the redirect URI has a fragment or characters that no address has"
    parts = _split(uri)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return "the redirect URI is not an absolute http or https address"
    if "@" in parts.netloc:
        return "the redirect URI has a user in it"
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        return "an http redirect URI must be of this machine: localhost, 127.0.0.0/8 or [::1]"
    return None


def is_same(registered: str, requested: str) -> bool:
    """Whether a client with one registered address may ask for the other: the texts are equal, or
    on this machine only the ports differ, because programs listen on whichever is free (RFC
    8252, 7.3).
    """
    if registered == requested:
        return True
    if redirect_fault(requested) is not None:
        return False
    ours, theirs = _split(registered), _split(requested)
    return (
        ours is not None
        and theirs is not None
        and ours.scheme == theirs.scheme == "http"
        and ours.hostname is not None
        and is_loopback(ours.hostname)
        and (ours.hostname, ours.path, ours.query) == (theirs.hostname, theirs.path, theirs.query)
    )


def with_answer(uri: str, **answer: str | None) -> str:
    """The address with the answer added to its query."""
    query = "&".join(
        f"{name}={quote(value, safe='')}" for name, value in answer.items() if value is not None
    )
    joined = "&" if split_url(uri).query else "" if uri.endswith("?") else "?"
    return f"{quote(uri, safe=_SAFE)}{joined}{query}"


def source_of(uri: str) -> str:
    """The address's origin as a Content-Security-Policy source, which cannot express IPv6."""
    parts = split_url(uri)
    return f"{parts.scheme}:" if "[" in parts.netloc else f"{parts.scheme}://{parts.netloc}"


def _split(uri: str) -> SplitResult | None:
    try:
        parts = split_url(uri)
        # Reading the port checks it; a colon without a port could be read in two ways.
        if parts.port == 0 or parts.netloc.endswith(":"):
            return None
        if "[" in parts.netloc:
            ipaddress.IPv6Address(parts.hostname or "")
        elif parts.hostname and _HOST.fullmatch(parts.hostname) is None:
            return None
    except ValueError:
        return None
    return parts
