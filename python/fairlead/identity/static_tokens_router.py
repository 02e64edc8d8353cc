"""`/api/me/tokens`: a person's own static tokens for tools."""

from __future__ import annotations

from fastapi import APIRouter, Response

from fairlead.errors import NotFound
from fairlead.identity.attempt import AttemptDep
from fairlead.moment import Time, moment_of
from fairlead.records.static_tokens import (
    StaticToken,
    insert_static_token,
    list_static_tokens,
    make_static_token,
    revoke_static_token,
)
from fairlead.store.file import Connection
from fairlead.wire import Limit, Name, Offset, Wire

router = APIRouter(prefix="/api/me/tokens", tags=["auth"])


class NewStaticToken(Wire):
    name: Name = "API token"


class StaticTokenView(Wire):
    id: str
    name: str
    token_preview: str
    created_at: Time
    revoked_at: Time | None


class CreatedStaticToken(StaticTokenView):
    """A new token with its text, which is shown this once."""

    token: str


class StaticTokenList(Wire):
    items: list[StaticTokenView]
    total: int
    limit: int
    offset: int


@router.get("", summary="One's own static tokens, newest first, with the revoked ones")
async def list_all(attempt: AttemptDep, limit: Limit = 50, offset: Offset = 0) -> StaticTokenList:
    user = await attempt.acting_user()
    tokens, total = await attempt.services.state.read(
        lambda con: list_static_tokens(con, user.id, limit, offset)
    )
    return StaticTokenList.model_construct(
        items=[_view(token) for token in tokens], total=total, limit=limit, offset=offset
    )


@router.post(
    "", status_code=201, summary="Make a static token; its text is shown only in this answer"
)
async def create(
    attempt: AttemptDep, response: Response, body: NewStaticToken | None = None
) -> CreatedStaticToken:
    """Only its hash is kept. It acts for the person at `/mcp` until it is revoked."""
    user = await attempt.acting_user()
    name = (body or NewStaticToken()).name
    text, token = make_static_token(user.id, name)
    await attempt.services.state.record(lambda con: insert_static_token(con, token, text))
    response.headers["cache-control"] = "no-store"
    return CreatedStaticToken.model_construct(**dict(_view(token)), token=text)


@router.delete("/{token_id}", status_code=204, summary="Revoke a static token")
async def revoke(attempt: AttemptDep, token_id: str) -> None:
    """Revokes a token, which is refused as soon as this returns."""
    user = await attempt.acting_user()

    def revoke_row(con: Connection) -> None:
        if not revoke_static_token(con, user.id, token_id):
            raise NotFound("You have no static token in force with this id.", param="id")

    await attempt.services.state.record(revoke_row)


def _view(token: StaticToken) -> StaticTokenView:
    return StaticTokenView.model_construct(
        id=token.id,
        name=token.name,
        token_preview=token.preview,
        created_at=moment_of(token.created_at_ms),
        revoked_at=None if token.revoked_at_ms is None else moment_of(token.revoked_at_ms),
    )
