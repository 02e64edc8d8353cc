"""`/api/providers/bulk`, `/api/providers/import` and `/api/providers/reorder`: many connections at once.

New rows are independent: an invalid one is reported with its position and its error, and the others are created
in one commit. An order is accepted completely or not at all.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter
from pydantic import Field, StrictBool, StrictStr, ValidationError

from fairlead.errors import FairleadError, InvalidRequest
from fairlead.gateway.fields import Text
from fairlead.gateway.providers.creation import (
    add_connection,
    draft_connection,
    event_data,
    provider_of,
)
from fairlead.gateway.providers.credentials import open_credentials
from fairlead.gateway.providers.endpoint import reached_endpoint
from fairlead.gateway.providers.fields import NewConnection
from fairlead.gateway.providers.obtained_probe import probe_obtained
from fairlead.gateway.providers.table import (
    Connection,
    count_connections,
    list_connections,
    set_priorities,
)
from fairlead.moment import now_ms
from fairlead.store.file import Connection as Database
from fairlead.store.outbox import Event, emit
from fairlead.store.services import Services, ServicesDep
from fairlead.text.invalid import invalid_request
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/providers", tags=["providers"])

# Keys that are probed at once.
ASKED_AT_ONCE = 8
# A priority is a number of 1 to 100.
ORDERED_MAX: Final = 100

# Any JSON value is accepted here, so that a row which is no object fails alone.
Rows = Annotated[list[Any], Field(min_length=1, max_length=200)]


ConnectionId = Annotated[StrictStr, Field(min_length=1, max_length=100)]


class Bulk(Wire):
    """`entries` have `name`, `apiKey` and any other field of a connection."""

    provider: Annotated[Text, Field(min_length=1, max_length=200)]
    entries: Rows
    validate_keys: StrictBool = Field(
        False, description="Ask the provider about each key, and refuse those that it rejects."
    )


class Import(Wire):
    """`entries` are connections, each with its `provider`; `baseUrl` may stand for
    `providerSpecificData.baseUrl`.
    """

    entries: Rows
    validate_keys: StrictBool = Field(
        False, description="Ask each provider, and refuse keys that it rejects."
    )


class ConnectionOrder(Wire):
    """The order in which connections are used, by their ids; those that are not named come behind."""

    connection_ids: Annotated[list[ConnectionId], Field(min_length=1, max_length=ORDERED_MAX)]


class MadeRow(Wire):
    """`index` is the row's place, from 0."""

    index: int
    id: str
    name: str
    provider: str


class RefusedRow(Wire):
    index: int
    name: str | None
    error: str
    param: str | None


class Outcome(Wire):
    """How many rows were made and refused, of how many; and each."""

    success: int
    failed: int
    total: int
    created: list[MadeRow]
    errors: list[RefusedRow]


@router.post("/bulk", summary="Add many keys of one provider")
async def bulk(body: Bulk, services: ServicesDep) -> Outcome:
    rows = [
        {"provider": body.provider, **_known(entry)} if isinstance(entry, dict) else entry
        for entry in body.entries
    ]
    return await _make(services, rows, asks=body.validate_keys)


@router.post("/import", summary="Import a list of connections of any providers")
async def import_list(body: Import, services: ServicesDep) -> Outcome:
    rows = [_known(entry) if isinstance(entry, dict) else entry for entry in body.entries]
    return await _make(services, rows, asks=body.validate_keys)


def _known(entry: dict[str, Any]) -> dict[str, Any]:
    """The row as the body of a connection: short spellings are replaced, empty fields left out."""
    row = {name: value for name, value in entry.items() if value not in (None, "")}
    specific = row.get("providerSpecificData") or {}
    if not isinstance(specific, dict):
        # The value's type is checked later, together with the row's other fields.
        return row
    specific = dict(specific)
    row.pop("providerSpecificData", None)
    if "baseUrl" in row:
        specific["baseUrl"] = row.pop("baseUrl")
    if "accountId" in row:
        specific["account"] = row.pop("accountId")
    return {**row, "providerSpecificData": specific} if specific else row


async def _make(services: Services, rows: list[Any], *, asks: bool) -> Outcome:
    errors: dict[int, FairleadError] = {}
    parsed: dict[int, NewConnection] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            errors[index] = InvalidRequest(
                f"entries.{index} must be an object with the fields of a connection.",
                param=f"entries.{index}",
            )
            continue
        try:
            parsed[index] = NewConnection.model_validate(row)
        except ValidationError as error:
            errors[index] = invalid_request([dict(each) for each in error.errors()])
    if asks:
        errors |= await _probe_rows(services, parsed)

    def insert_rows(con: Database) -> dict[int, Connection]:
        made = {}
        for index, new in parsed.items():
            if index in errors:
                continue
            try:
                made[index] = add_connection(con, services.state.sealer, new)
            except FairleadError as error:
                errors[index] = error
        return made

    made = await services.state.commit(insert_rows)
    return Outcome.model_construct(
        success=len(made),
        failed=len(errors),
        total=len(rows),
        created=[
            MadeRow.model_construct(index=index, id=each.id, name=each.name, provider=each.provider)
            for index, each in sorted(made.items())
        ],
        errors=[
            RefusedRow.model_construct(
                index=index, name=_name(rows[index]), error=error.message, param=error.param
            )
            for index, error in sorted(errors.items())
        ],
    )


async def _probe_rows(
    services: Services, parsed: dict[int, NewConnection]
) -> dict[int, FairleadError]:
    """Probes the providers with the keys of these rows; the errors by row."""
    turns = asyncio.Semaphore(ASKED_AT_ONCE)
    sealer = services.state.sealer
    errors: dict[int, FairleadError] = {}

    async def probe_row(index: int, new: NewConnection) -> None:
        def find_endpoint(con: Database) -> tuple[Any, Any, str, dict[str, Any]]:
            draft = draft_connection(con, sealer, new)
            endpoint = reached_endpoint(
                con, sealer, provider_of(con, draft), draft.auth_type, draft.provider_specific
            )
            credentials = open_credentials(sealer, draft)
            return endpoint, credentials, draft.auth_type, draft.provider_specific

        async with turns:
            try:
                finding = await probe_obtained(*await services.state.read(find_endpoint))
            except FairleadError as error:
                errors[index] = error
                return
        if not finding.valid:
            errors[index] = InvalidRequest(finding.error or "The key is not valid.", param="apiKey")

    async with asyncio.TaskGroup() as asking:
        for index, new in parsed.items():
            asking.create_task(probe_row(index, new))
    return errors


def _name(row: object) -> str | None:
    name = row.get("name") if isinstance(row, dict) else None
    return name[:200] if isinstance(name, str) else None


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
        by_id = {
            each.id: each for each in sorted(found, key=lambda each: (each.priority, each.name))
        }
        for at, connection_id in enumerate(body.connection_ids):
            if connection_id not in by_id:
                raise InvalidRequest(
                    f"connectionIds.{at}: there is no connection with this id.",
                    param=f"connectionIds.{at}",
                )
        if len(set(body.connection_ids)) < len(body.connection_ids):
            raise InvalidRequest(
                "connectionIds: each connection has one place.", param="connectionIds"
            )
        others = [each for each in by_id if each not in body.connection_ids]
        places = {each: at for at, each in enumerate([*body.connection_ids, *others], 1)}
        changed = {each: place for each, place in places.items() if by_id[each].priority != place}
        if changed:
            set_priorities(con, changed, now_ms())
        for connection_id in changed:
            data = {**event_data(by_id[connection_id]), "changed": ["priority"]}
            emit(con, Event("provider.updated", data))

    await services.state.commit(put)
    return Success()
