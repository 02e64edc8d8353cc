"""Headers that an operator adds to every call of a node: which are legal, and how they are masked."""

from __future__ import annotations

import re

from fairlead.net.hop_headers import HOP_HEADERS

MAX_HEADERS = 32
MASK = "***"

_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?")

# The body is JSON that fairlead writes.
_RESERVED = HOP_HEADERS | {"content-type"}
_INTERNAL_PREFIXES = ("x-fairlead-", "x-gateway-", ":")


def check_headers(headers: dict[str, str]) -> dict[str, str]:
    """The headers with names in lower case; `ValueError` says which is not legal (names only, never
    values).
    """
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"must be at most {MAX_HEADERS} headers")
    checked: dict[str, str] = {}
    for given, value in headers.items():
        name = given.lower()
        if _NAME.fullmatch(name) is None:
            raise ValueError("must have header names of 1 to 64 letters, digits and -_.")
        if name in _RESERVED or name.startswith(_INTERNAL_PREFIXES):
            raise ValueError(f"must not set `{name}`, which is fairlead's to send")
        if name in checked:
            raise ValueError(f"must name `{name}` once")
        if _VALUE.fullmatch(value) is None:
            raise ValueError(f"must give `{name}` a value of 1 to 4096 printable ASCII characters")
        checked[name] = value
    return checked


def unmask(headers: dict[str, str], stored: dict[str, str]) -> dict[str, str]:
    """The headers that a caller meant who sent an answer back: a masked value stays as stored.
    `KeyError` when nothing is stored for it.
    """
    return {name: stored[name] if value == MASK else value for name, value in headers.items()}
