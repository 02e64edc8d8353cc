"""The parameters of a request, from its query or its form, each sent once and readable in one way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self
from urllib.parse import unquote_to_bytes

from fastapi import Request

from fairlead.identity.oauth.fault import OAuthFault

PARAMETERS_MAX = 64


class Unreadable(ValueError):
    """The reason why the text is not a list of parameters."""


class Parameters:
    """The parameters that were sent. One without a value counts as not sent (RFC 6749, 3.1)."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            if value:
                self._values.setdefault(name, []).append(value)

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Parameters of `name=value&...`. `Unreadable` for a text that two readers could understand
        differently.
        """
        if not text:
            return cls([])
        pieces = text.split(b"&")
        if len(pieces) > PARAMETERS_MAX:
            raise Unreadable("there are too many parameters")
        return cls([(_decode(name), _decode(value)) for name, _, value in map(_halves, pieces)])

    def get(self, name: str) -> str | None:
        """The value of a parameter, or None. To be called after `repeated`."""
        found = self._values.get(name)
        return found[0] if found else None

    def all(self, name: str) -> list[str]:
        """Every value that was sent."""
        return self._values.get(name, [])

    def repeated(self, names: frozenset[str]) -> str | None:
        """One of these parameters that was sent more than once, or None."""
        return next((name for name in names if len(self._values.get(name, ())) > 1), None)

    def holds(self, names: frozenset[str]) -> bool:
        """Whether any of these was sent."""
        return any(name in self._values for name in names)

    def as_mapping(self) -> Mapping[str, list[str]]:
        """All parameters."""
        return self._values


async def read_form(request: Request, known: frozenset[str], *, once: frozenset[str]) -> Parameters:
    """The form of a program's request (RFC 6749, 3.2): none of the known parameters in the query, and
    those of `once` at most once. `invalid_request` otherwise.
    """
    try:
        if Parameters.read(request.scope.get("query_string", b"")).holds(known):
            raise Unreadable("parameters belong into the body, not into the query")
        form = Parameters.read(await request.body())
    except Unreadable as error:
        raise OAuthFault("invalid_request", f"{error}") from None
    if (name := form.repeated(once)) is not None:
        raise OAuthFault("invalid_request", f"{name} was sent more than once")
    return form


def is_form(request: Request) -> bool:
    """Whether the media type is that of a form; its parameters do not matter."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/x-www-form-urlencoded"


def _halves(piece: bytes) -> tuple[bytes, bytes, bytes]:
    return piece.partition(b"=")


def _decode(text: bytes) -> str:
    if re.search(rb"%(?![0-9A-Fa-f]{2})", text):
        raise Unreadable("a percent sign is not followed by two hexadecimal digits")
    try:
        return unquote_to_bytes(text.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("a parameter is not UTF-8") from None
