"""`GET /api/usage/refused-callers`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from fairlead.moment import Time, moment_of
from fairlead.records.refused_callers import (
    RefusedCallers,
    RefusedCallersFilter,
    count_requests,
    read_counts,
)
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.usage.routes.router import From, To, span_of
from fairlead.wire import Limit, Wire

router = APIRouter(prefix="/api/usage", tags=["usage"])


class RefusedCallersView(Wire):
    """The refused requests of one minute, address, route and reason."""

    minute: Time = Field(description="The start of the minute, UTC.")
    address: str | None = Field(
        description="Null where a minute had more than 64 of these groups at a relay worker: the others are counted "
        "together."
    )
    method: str
    path: str = Field(
        description="The path of the route; empty where the request was refused before."
    )
    status: int
    kind: str = Field(description="The kind of the error, as `unauthenticated`.")
    message: str = Field(description="The sentence that the caller received.")
    requests: int


class RefusedCallersPage(Wire):
    """The newest groups. `requests` counts the requests of the whole time, of every address."""

    refused: list[RefusedCallersView]
    requests: int
    limit: int


@router.get(
    "/refused-callers",
    summary="Requests that were refused because of who called, or from where",
)
async def refused_callers(
    services: ServicesDep,
    *,
    limit: Limit = 50,
    from_: From = None,
    to: To = None,
    address: Annotated[str | None, Query(max_length=64)] = None,
) -> RefusedCallersPage:
    """A request without a known key has no entry in the log of requests: it is counted here for seven days, by minute,
    address, route and reason. Newest first.
    """
    span = span_of(from_, to)
    wanted = RefusedCallersFilter(span.from_ms, span.until_ms, address)

    def read(con: Connection) -> tuple[list[RefusedCallers], int]:
        return read_counts(con, wanted, limit), count_requests(con, wanted)

    counts, requests = await services.state.read(read)
    return RefusedCallersPage.model_construct(
        refused=[
            RefusedCallersView.model_construct(
                minute=moment_of(count.minute_ms), **count.model_dump(exclude={"minute_ms"})
            )
            for count in counts
        ],
        requests=requests,
        limit=limit,
    )
