"""`/api/providers/reorder`: connections in an order, each with a priority of its own."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter
from pydantic import Field, StrictStr

from fairlead.errors import InvalidRequest
from fairlead.gateway.providers.creation import event_data
from fairlead.gateway.providers.table import (
    count_connections,
    list_connections,
    set_priorities,
)
from fairlead.moment import now_ms
from fairlead.store.file import Connection as Database
from fairlead.store.outbox import Event, emit
from fairlead.store.services import ServicesDep
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/providers", tags=["providers"])

# A priority is a number of 1 to 100.
ORDERED_MAX: Final = 100


ConnectionId = Annotated[StrictStr, Field(min_length=1, max_length=100)]


class ConnectionOrder(Wire):
    """The order in which connections are used, by their ids; those that are not named come behind."""

    connection_ids: Annotated[list[ConnectionId], Field(min_length=1, max_length=ORDERED_MAX)]


@router.post("/reorder", summary="Put connections in an order: the first gets the priority 1")
async def reorder(body: ConnectionOrder, services: ServicesDep) -> Success:
    """Requests go by the order when this returns. Only while there are at most 100 connections."""

    def put(con: Database) -> None:
        count = count_connections(con)
        if count > ORDERED_MAX:
            raise InvalidRequest(
                f"There are {count:,} connections, and priorities go from 1 to {ORDERED_MAX}: set "
                "the priority of each instead.",
                param="connectionIds",
            )
        found = list_connections(con, ORDERED_MAX, 0)
        there = {
            each.id: each for each in sorted(found, key=lambda each: (each.priority, each.name))
        }
        for at, connection_id in enumerate(body.connection_ids):
            if connection_id not in there:
                raise InvalidRequest(
                    f"connectionIds.{at}: there is no connection with this id.",
                    param=f"connectionIds.{at}",
                )
        if len(set(body.connection_ids)) < len(body.connection_ids):
            raise InvalidRequest(
                "connectionIds: each connection has one place.", param="connectionIds"
            )
        others = [each for each in there if each not in body.connection_ids]
        places = {each: at for at, each in enumerate([*body.connection_ids, *others], 1)}
        changed = {each: place for each, place in places.items() if there[each].priority != place}
        if changed:
            set_priorities(con, changed, now_ms())
        for connection_id in changed:
            data = {**event_data(there[connection_id]), "changed": ["priority"]}
            emit(con, Event("provider.updated", data))

    await services.state.commit(put)
    return Success()
