"""Whether a form was sent by a page of this gateway."""

from __future__ import annotations

from fastapi import Request

from fairlead.identity.oauth.issuer import Issuer
from fairlead.net.url import split_url


def is_own_page(request: Request, issuer: Issuer) -> bool:
    """`Origin` says so, else `Referer`; silence does not."""
    origins = request.headers.getlist("origin")
    if origins:
        return origins == [issuer.origin]
    referers = request.headers.getlist("referer")
    if len(referers) != 1:
        return False
    try:
        parts = split_url(referers[0])
    except ValueError:
        return False
    return f"{parts.scheme}://{parts.netloc}" == issuer.origin
