"""Origins of web pages, in the spelling of the `Origin` header."""

from __future__ import annotations

import ipaddress
import re

ORIGINS_MAX = 50
ORIGIN_MAX_CHARS = 300

_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://"
    r"(?P<host>[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}


def spell_origin(text: str) -> str:
    """`scheme://host[:port]` in lower case, without a default port. `ValueError` states the rule.

    `*` and `null` are refused: `*` would open a gateway without keys to every page that its user visits, and
    `null` is sent by every sandboxed page.
    """
    found = _ORIGIN.fullmatch(text.lower().removesuffix("/"))
    port = found["port"] if found else None
    if (
        found is None
        or len(text) > ORIGIN_MAX_CHARS
        or (port is not None and not 1 <= int(port) <= 65535)
        or (found["host"].startswith("[") and not _is_ipv6(found["host"][1:-1]))
    ):
        raise ValueError(
            "each must be scheme://host[:port] as a browser sends it in Origin, such as "
            "https://app.example.com; * and null are none"
        )
    if port == _DEFAULT_PORTS.get(found["scheme"]):
        port = None
    return f"{found['scheme']}://{found['host']}" + (f":{int(port)}" if port else "")


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
