"""`/api/auth/tokens`: management access tokens, made and revoked by people."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Response

from fairlead.errors import InvalidRequest, NotFound, Unauthenticated
from fairlead.identity.attempt import AttemptDep
from fairlead.identity.tokens import (
    Scope,
    StoredToken,
    count_tokens,
    delete_token,
    insert_token,
    list_tokens,
    mint_token,
)
from fairlead.moment import Moment, Time, moment_of, ms_of, now_ms
from fairlead.store.file import Connection
from fairlead.wire import Limit, Name, Offset, Success, Wire

router = APIRouter(prefix="/api/auth/tokens", tags=["auth"])


class NewToken(Wire):
    name: Name
    scope: Scope
    expires_at: Moment | None = None


class TokenView(Wire):
    """A token as it is listed: everything but its text."""

    id: str
    name: str
    scope: Scope
    token_preview: str
    created_by: str | None
    created_at: Time
    expires_at: Time | None


class CreatedToken(TokenView):
    """A new token with its text, which is shown this once."""

    token: str


class TokenList(Wire):
    tokens: list[TokenView]
    total: int
    limit: int
    offset: int


@router.get("", summary="List management access tokens, newest first")
async def list_all(attempt: AttemptDep, limit: Limit = 50, offset: Offset = 0) -> TokenList:
    """A page of management access tokens."""

    def read_page(con: Connection) -> tuple[list[StoredToken], int]:
        return list_tokens(con, limit, offset), count_tokens(con)

    tokens, total = await attempt.services.state.read(read_page)
    return TokenList.model_construct(
        tokens=[_view(token) for token in tokens], total=total, limit=limit, offset=offset
    )


@router.post(
    "",
    status_code=201,
    summary="Make a management access token; its text is shown only in this answer",
)
async def create(body: NewToken, attempt: AttemptDep, response: Response) -> CreatedToken:
    """Only its hash is kept."""
    principal = attempt.caller.principal
    if principal.kind not in ("session", "local"):
        # While no login is required anybody could make a token, and it would outlast that setting.
        raise Unauthenticated("Sign in first: an access token is made by a person.")
    expires_at_ms = _future_ms(body.expires_at)
    created_by = principal.id if principal.kind == "session" else None
    text, token = mint_token(body.name, body.scope, created_by, expires_at_ms)
    await attempt.services.state.commit(lambda con: insert_token(con, token))
    response.headers["cache-control"] = "no-store"
    return CreatedToken.model_construct(**dict(_view(token)), token=text)


@router.delete("/{token_id}", summary="Revoke a management access token")
async def revoke(token_id: str, attempt: AttemptDep) -> Success:
    """Revokes a token, which is refused everywhere as soon as this returns."""

    def delete_row(con: Connection) -> None:
        if not delete_token(con, token_id):
            raise NotFound("There is no access token with this id.", param="id")

    await attempt.services.state.commit(delete_row)
    return Success()


def _future_ms(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    at_ms = ms_of(moment)
    if at_ms <= now_ms():
        raise InvalidRequest("expiresAt must be in the future.", param="expiresAt")
    return at_ms


def _view(token: StoredToken) -> TokenView:
    return TokenView.model_construct(
        id=token.id,
        name=token.name,
        scope=token.scope,
        token_preview=token.preview,
        created_by=token.created_by,
        created_at=moment_of(token.created_at_ms),
        expires_at=None if token.expires_at_ms is None else moment_of(token.expires_at_ms),
    )
