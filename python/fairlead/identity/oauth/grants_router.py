"""`/api/auth/grants`: the tool clients that somebody has approved, and taking an approval back."""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.errors import NotFound
from fairlead.identity.attempt import AttemptDep
from fairlead.identity.oauth.service import OAuthDep
from fairlead.moment import Time, moment_of
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/auth/grants", tags=["auth"])


class GrantView(Wire):
    """An approval. `clientName` is what the client says of itself; nobody has checked it."""

    id: str
    client_id: str
    client_name: str
    redirect_uri: str
    resource: str
    created_at: Time


class GrantList(Wire):
    grants: list[GrantView]
    total: int


@router.get("", summary="List the tool clients that one has approved, newest first")
async def list_all(attempt: AttemptDep, oauth: OAuthDep) -> GrantList:
    """The signed-in user's own; the owner's for the local command line."""
    user = await attempt.acting_user()
    views = [
        GrantView.model_construct(
            id=grant.id,
            client_id=grant.client_id,
            client_name=client.name if client else "",
            redirect_uri=client.redirect_uri if client else "",
            resource=grant.resource,
            created_at=moment_of(grant.created_at_ms),
        )
        for grant, client in await oauth.ledger.grants_of(user.id)
    ]
    return GrantList.model_construct(grants=views, total=len(views))


@router.delete("/{grant_id}", summary="Take an approval back; its tokens end at once")
async def end(grant_id: str, attempt: AttemptDep, oauth: OAuthDep) -> Success:
    """404 for an approval of another user."""
    user = await attempt.acting_user()
    if not await oauth.ledger.end(grant_id, user.id):
        raise NotFound("There is no approval with this id.", param="id")
    return Success()
