"""The page on which somebody signs in to approve something, and which leads back to it."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import Response

from fairlead.identity.oauth.pages import page
from fairlead.identity.sign_in import Attempt


async def login_page(attempt: Attempt, client: str, return_to: str) -> Response:
    """The page. `client` is what will be approved, `return_to` the path that it leads back to."""
    sso, sign_on = None, await attempt.sign_on()
    if sign_on.issuer is not None:
        sso = f"/api/auth/oidc/login?{urlencode({'return_to': return_to})}"
    return page(
        "connect.html",
        form_action="'self'",
        client=client,
        return_to=return_to,
        sso=sso,
        with_password=not sign_on.local_auth_disabled,
        with_script=True,
    )
