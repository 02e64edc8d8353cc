"""`/api/usage/token-limits`: set, see and lift the token limits of a key."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Query, Response
from pydantic import Field, StrictBool, StrictInt

from fairlead.calls.caller import CallerDep, Principal, own_key_id, refuse_over_managing_keys
from fairlead.errors import Forbidden, InvalidRequest, NotFound
from fairlead.moment import Time, moment_of, now_ms
from fairlead.records.provider_names import provider_id
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.usage.token_limits.table import (
    ResetInterval,
    ScopeType,
    TokenLimit,
    delete_limit,
    find_limit,
    list_limits,
    put_limit,
)
from fairlead.usage.token_limits.use import LimitUse, use_of_limits
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/usage/token-limits", tags=["usage"])

LIMITS_MAX = 50

Id = Annotated[str, Field(min_length=1, max_length=64)]
ClockTime = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]


class NewTokenLimit(Wire):
    """A limit to set. With the id of an existing limit it replaces that limit."""

    id: Id | None = None
    api_key_id: Id
    scope_type: ScopeType = "global"
    scope_value: Annotated[str, Field(min_length=1, max_length=300)] | None = Field(
        None,
        description="The model with its prefix, or the provider by its id or prefix; not for `global`.",
    )
    token_limit: Annotated[StrictInt, Field(ge=1, le=2**53 - 1)]
    reset_interval: ResetInterval = "monthly"
    reset_time: ClockTime = Field("00:00", description="Time of day of the reset, UTC.")
    enabled: StrictBool = True


class TokenLimitView(Wire):
    """A limit and how much of it is used."""

    id: str
    api_key_id: str
    scope_type: ScopeType
    scope_value: str | None
    token_limit: int
    reset_interval: ResetInterval
    reset_time: str
    enabled: bool
    tokens_used: int = Field(
        description="Tokens of settled requests; the newest may appear a second later."
    )
    remaining: int
    window_start: Time
    period_start_at: Time
    next_reset_at: Time


class TokenLimits(Wire):
    api_key_id: str
    limits: list[TokenLimitView]


def _refuse_own(principal: Principal, key_id: str) -> None:
    """`Forbidden` for a key that would change its own limits: with `write:budget` it could lift them."""
    if principal.kind == "key" and principal.id == key_id:
        raise Forbidden(
            "A key does not change its own token limits: use another credential.", param="apiKeyId"
        )


@router.get("", summary="Token limits of a key, with what is used of them")
async def show(
    services: ServicesDep, caller: CallerDep, api_key_id: Annotated[Id, Query(alias="apiKeyId")]
) -> TokenLimits:
    """Every limit of the key, also those that are switched off."""
    own_key_id(caller.principal, "read:usage", api_key_id)

    def read_limits(con: Connection) -> list[TokenLimit]:
        _check_key(con, api_key_id)
        return list_limits(con, api_key_id)

    limits = await services.state.read(read_limits)
    return TokenLimits.model_construct(api_key_id=api_key_id, limits=await _views(services, limits))


@router.post(
    "",
    status_code=201,
    summary="Set a token limit; with an id, change it",
    responses={200: {"model": TokenLimitView, "description": "Changed."}},
)
async def put(
    new: NewTokenLimit, services: ServicesDep, caller: CallerDep, response: Response
) -> TokenLimitView:
    """The limit is in force when this is answered, what was used before it included."""
    if (new.scope_value is None) != (new.scope_type == "global"):
        raise InvalidRequest(
            "scopeValue must be sent with scopeType `model` or `provider`, and only then.",
            param="scopeValue",
        )

    def store(con: Connection) -> tuple[TokenLimit, bool]:
        refuse_over_managing_keys(caller.principal, _check_key(con, new.api_key_id))
        _refuse_own(caller.principal, new.api_key_id)
        before = find_limit(con, new.id) if new.id else None
        if new.id and (before is None or before.key_id != new.api_key_id):
            raise NotFound("This key has no token limit with this id.", param="id")
        if before is None and len(list_limits(con, new.api_key_id)) >= LIMITS_MAX:
            raise InvalidRequest(
                f"A key has at most {LIMITS_MAX} token limits; lift one first.", param="apiKeyId"
            )
        scope_value = new.scope_value
        if new.scope_type == "provider" and scope_value is not None:
            # Calls are counted by the provider's id: a prefix would count none.
            scope_value = provider_id(con, scope_value, "scopeValue")
        at_ms = now_ms()
        hours, minutes = new.reset_time.split(":")
        limit = TokenLimit(
            id=before.id if before else str(uuid4()),
            key_id=new.api_key_id,
            scope_type=new.scope_type,
            scope_value=scope_value,
            token_limit=new.token_limit,
            reset_interval=new.reset_interval,
            reset_minute=int(hours) * 60 + int(minutes),
            enabled=new.enabled,
            created_at_ms=before.created_at_ms if before else at_ms,
            updated_at_ms=at_ms,
        )
        put_limit(con, limit)
        return limit, before is not None

    limit, is_change = await services.state.commit(store)
    if is_change:
        response.status_code = 200
    return (await _views(services, [limit]))[0]


@router.delete("", summary="Remove a token limit")
async def lift(
    services: ServicesDep, caller: CallerDep, limit_id: Annotated[Id, Query(alias="id")]
) -> Success:
    """The limit no longer applies when this returns."""

    def delete_row(con: Connection) -> None:
        limit = find_limit(con, limit_id)
        if limit is None:
            raise NotFound("There is no token limit with this id.", param="id")
        refuse_over_managing_keys(caller.principal, _check_key(con, limit.key_id))
        _refuse_own(caller.principal, limit.key_id)
        delete_limit(con, limit_id)

    await services.state.commit(delete_row)
    return Success()


def _check_key(con: Connection, key_id: str) -> list[str]:
    """The scopes of a key; `NotFound` when it does not exist."""
    row = con.execute("SELECT scopes FROM keys WHERE id = ?", [key_id]).fetchone()
    if row is None:
        raise NotFound("There is no API key with this id.", param="apiKeyId")
    return list(row[0])


async def _views(services: ServicesDep, limits: list[TokenLimit]) -> list[TokenLimitView]:
    return [_view(use) for use in await use_of_limits(services, limits, now_ms())]


def _view(use: LimitUse) -> TokenLimitView:
    limit = use.limit
    return TokenLimitView.model_construct(
        id=limit.id,
        api_key_id=limit.key_id,
        scope_type=limit.scope_type,
        scope_value=limit.scope_value,
        token_limit=limit.token_limit,
        reset_interval=limit.reset_interval,
        reset_time=f"{limit.reset_minute // 60:02}:{limit.reset_minute % 60:02}",
        enabled=limit.enabled,
        tokens_used=use.used,
        remaining=use.remaining,
        window_start=moment_of(use.starts_ms),
        period_start_at=moment_of(use.starts_ms),
        next_reset_at=moment_of(use.ends_ms),
    )
