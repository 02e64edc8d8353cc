"""Stored secrets stay with the host that they were given for.

Whoever may change an address is not therefore one who may read the secrets that go there: with a host of
their own they would. So a secret is asked for again when its address gets another origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from fairlead.errors import InvalidRequest
from fairlead.host import DEFAULT_PORTS


def origin_of(url: str) -> str:
    """`scheme://host[:port]` of an address in our spelling; the scheme's own port is left out."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    host = (parts.hostname or "").lower()
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, DEFAULT_PORTS.get(scheme)) else f":{parts.port}"
    return f"{scheme}://{shown}{port}"


def moved_to(before: Iterable[str], after: Iterable[str]) -> str | None:
    """The first origin of `after` at which nothing of `before` is, if there is one."""
    known = {origin_of(url) for url in before}
    return next((there for url in after if (there := origin_of(url)) not in known), None)


def check_kept(field: str, before: Iterable[str], after: Iterable[str]) -> None:
    """`InvalidRequest` when the stored secret of `field` would go where it was not given for; for a change
    that does not send it again.
    """
    there = moved_to(before, after)
    if there is not None:
        raise InvalidRequest(
            f"{field} is kept for another host than {there}, where it would go now: send it again with "
            "the new address.",
            param=field,
        )
