"""Variables that set a proxy for other programs, and that the gateway does not follow.

A gateway sends keys and conversations, so its operator sets where they go in the outbound proxies. A variable
that was meant for something else on the machine does not count, and the operator is warned about it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from fairlead.net.connection_fault import shown_address

_NAMES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
PAGE: Final = "docs/how-to/reach-providers-through-a-proxy.md"


def ignored_proxies(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that are set, in either spelling, with their address as it may be shown."""
    where = os.environ if environment is None else environment
    names = [spelled for name in _NAMES for spelled in (name, name.lower())]
    return {name: _masked(where[name]) for name in names if where.get(name)}


def _masked(address: str) -> str:
    """Without the login, which is shown as `***`."""
    shown = shown_address(address if "://" in address else f"http://{address}", with_path=False)
    if "@" not in address:
        return shown
    scheme, separator, place = shown.partition("://")
    return f"{scheme}{separator}***@{place}"


def proxy_warning(proxies: Mapping[str, str]) -> str:
    """One sentence about variables that are set."""
    shown = " and ".join(f"{name} ({address})" for name, address in proxies.items())
    is_or_are = "is" if len(proxies) == 1 else "are"
    return f"{shown} {is_or_are} not used for calls of providers"
