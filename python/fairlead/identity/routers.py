"""Every router of identity, in the order in which routes are tried."""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.identity.account_router import router as account
from fairlead.identity.oauth.authorize_router import router as authorize
from fairlead.identity.oauth.device_router import router as devices
from fairlead.identity.oauth.grants_router import router as grants
from fairlead.identity.oauth.metadata_router import router as metadata
from fairlead.identity.oauth.registration_router import router as registration
from fairlead.identity.oauth.token_router import router as oauth_tokens
from fairlead.identity.oidc.router import router as oidc
from fairlead.identity.pages import router as pages
from fairlead.identity.router import router as auth
from fairlead.identity.static_tokens_router import router as static_tokens
from fairlead.identity.tokens_router import router as tokens
from fairlead.identity.users_router import router as users

# The most frequent routes come first, because they are tried in order.
ROUTERS: tuple[APIRouter, ...] = (
    oauth_tokens,
    auth,
    account,
    tokens,
    static_tokens,
    users,
    oidc,
    pages,
    metadata,
    registration,
    authorize,
    devices,
    grants,
)
