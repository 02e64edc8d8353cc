"""Base URLs and paths of providers: one spelling per address, and none that must never be dialled.

`normalise_base_url` is the only way for a base URL into the database. It spells every address in
one way (each form of an IPv4 address that C libraries understand becomes a dotted quad), so the
address that is checked here is the one that is dialled later. Host names are judged again each time
they are resolved.
"""

from __future__ import annotations

import re

from fairlead import _core
from fairlead.net.host import AddressRefused, spell_origin, split_address
from fairlead.net.operator_egress import POLICY

MAX_URL_CHARS = 2048
MAX_PATH_CHARS = 256


_PATH = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)*/*")


def normalise_base_url(text: str) -> str:
    """`http(s)://host[:port][/path]` without a trailing slash; `AddressRefused` for anything else."""
    if len(text) > MAX_URL_CHARS:
        raise AddressRefused(f"must have at most {MAX_URL_CHARS} characters")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise AddressRefused("must be printable ASCII without spaces and backslashes")
    if "?" in text or "#" in text:
        raise AddressRefused("must have neither query nor fragment")
    parts = split_address(text, instead_of_login="; send the key as apiKey")
    return f"{spell_origin(parts, _allowed)}{_normalise_path(parts.path)}"


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
