"""Why a connection to an address failed, in words for the operator who chose the address."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlunsplit

from fairlead.net.url import split_url

_CONTROLS: Final = re.compile(r"[\x00-\x20\x7f-\x9f]")


def shown_address(url: str, *, with_path: bool = True) -> str:
    """An address as it may be shown: without user, password and query, which can be secrets."""
    try:
        parts = split_url(url)
        place = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an address that cannot be read"
    shown = urlunsplit((parts.scheme, place, parts.path if with_path else "", "", ""))
    return _CONTROLS.sub("", shown)


def cause_of(error: BaseException) -> str:
    """A phrase for what happened, such as `the connection was refused`."""
    for each in _chain(error):
        match each:
            case socket.gaierror():
                return "the name does not resolve"
            case ssl.SSLCertVerificationError():
                return f"the certificate is not trusted ({each.verify_message})"
            case ssl.SSLError():
                return f"TLS failed ({each.reason or 'no reason given'})"
            case ConnectionRefusedError():
                return "the connection was refused"
            case ConnectionResetError() | BrokenPipeError():
                return "the connection was reset"
            case TimeoutError():
                return "no connection was accepted in time"
            case OSError() if each.errno is not None and each.strerror:
                return each.strerror[0].lower() + each.strerror[1:]
            case _:
                continue
    return "the connection failed"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it, the root last."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
