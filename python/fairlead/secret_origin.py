"""Binds stored secrets to the origin that they were entered for.

Permission to change an address does not include permission to read the secret that is sent there, which a host
of the changer's own would receive. So the secret must be entered again when its address moves to another
origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from fairlead.errors import InvalidRequest
from fairlead.host import DEFAULT_PORTS


def origin_of(url: str) -> str:
    """`scheme://host[:port]` of a normalised URL, without the scheme's default port."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    host = (parts.hostname or "").lower()
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, DEFAULT_PORTS.get(scheme)) else f":{parts.port}"
    return f"{scheme}://{shown}{port}"


def new_origin(before: Iterable[str], after: Iterable[str]) -> str | None:
    """The first origin of `after` that no URL of `before` has, or None."""
    known = {origin_of(url) for url in before}
    return next((origin for url in after if (origin := origin_of(url)) not in known), None)


def check_secret_origin(field: str, before: Iterable[str], after: Iterable[str]) -> None:
    """Raises `InvalidRequest` when the stored secret of `field` would be sent to a new origin.

    For changes that do not include the secret itself.
    """
    origin = new_origin(before, after)
    if origin is not None:
        raise InvalidRequest(
            f"{field} is stored for another host than {origin}: send it again with the new address.",
            param=field,
        )
