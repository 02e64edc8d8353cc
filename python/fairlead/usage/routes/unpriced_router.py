"""`GET /api/usage/unpriced`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from fairlead.calls.caller import CallerDep, own_key_id
from fairlead.store.services import ServicesDep
from fairlead.usage.figures.unpriced import Group, read_unpriced
from fairlead.usage.routes.router import From, KeyId, To, span_of
from fairlead.wire import Wire

router = APIRouter(prefix="/api/usage", tags=["usage"])


class UnpricedGroupView(Wire):
    """A group, and its requests whose cost is not known."""

    value: str | None = Field(description="The group's name or id; the start of a day, UTC.")
    requests: int


class Unpriced(Wire):
    """Requests of models without a price. Their cost counts as 0 in every sum."""

    group_by: Group
    groups: list[UnpricedGroupView]
    total: int = Field(description="Requests of all groups.")


@router.get("/unpriced", summary="Requests whose cost is not known, because a model has no price")
async def unpriced(
    services: ServicesDep,
    caller: CallerDep,
    *,
    group_by: Annotated[Group, Query(alias="groupBy")] = "model",
    from_: From = None,
    to: To = None,
    key_id: KeyId = None,
) -> Unpriced:
    """As far back as `usageRetentionDays`. Without `to` it is until now, without `from` the last seven days."""
    key_id = own_key_id(caller.principal, "read:usage", key_id)
    span = span_of(from_, to)
    rows = await services.usage.read(lambda con: read_unpriced(con, span, group_by, key_id))
    return Unpriced.model_construct(
        group_by=group_by,
        groups=[
            UnpricedGroupView.model_construct(value=row.value, requests=row.requests)
            for row in rows
        ],
        total=sum(row.requests for row in rows),
    )
