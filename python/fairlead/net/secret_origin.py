"""Binds stored secrets to the origin that they were entered for.

Permission to change an address does not include permission to read the secret that is sent there, which a host
of the changer's own would receive. So the secret must be entered again when its address moves to another
origin.

A secret that has one address is compared with it whenever the address changes. A secret whose address may be empty
for a
while, or that goes to several addresses, is stored with the origins that it was given for (`spell_origins`) and checked
against them before each use (`check_given_for`): an address that was emptied in between does not forget them.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from fairlead.errors import InvalidRequest
from fairlead.net.host import DEFAULT_PORTS
from fairlead.net.url import split_url


def origin_of(url: str) -> str:
    """`scheme://host[:port]` of a normalised URL, without the scheme's default port."""
    parts = split_url(url)
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


def spell_origins(urls: Iterable[str | None]) -> str:
    """The origins of these addresses, as they are stored beside a secret that was given for them."""
    return orjson.dumps(sorted({origin_of(url) for url in urls if url is not None})).decode()


def is_given_for(origins: str | None, url: str) -> bool:
    """Whether a secret with these stored origins may be sent to the address. Without any, the secret is of an
    earlier version and is bound when an address changes next.
    """
    return origins is None or origin_of(url) in orjson.loads(origins)


def check_given_for(field: str, origins: str | None, url: str) -> None:
    """Raises `InvalidRequest` when the secret of `field` was given for other origins than that of the address."""
    if not is_given_for(origins, url):
        raise InvalidRequest(
            f"{field} is stored for another host than {origin_of(url)}: send it again for this address.",
            param=field,
        )
