"""A response of an owner, whether it is running or stored."""

from __future__ import annotations

from typing import Any

import orjson

from fairlead.errors import InvalidRequest
from fairlead.gateway.responses.background import background_responses, storing_end
from fairlead.gateway.responses.intake import read_stored, response_intake
from fairlead.gateway.responses.table import (
    StoredResponse,
    delete_response,
    events_of,
    find_response,
)
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import Services


async def read_response(
    services: Services, owner: str, response_id: str
) -> tuple[dict[str, Any], str]:
    """The response as it is now, and the model's name that its caller used. `NotFound`."""
    if (job := await background_responses(services).find(response_id, owner)) is not None:
        return job.response, job.model
    stored = await read_stored(
        services, lambda con: find_response(con, response_id, owner, now_ms())
    )
    return orjson.loads(stored.response), stored.model


async def read_with_events(
    services: Services, owner: str, response_id: str
) -> tuple[StoredResponse, str | None]:
    """A stored response, and its events as JSON where they are stored. `NotFound`."""

    def read(con: Connection) -> tuple[StoredResponse, str | None]:
        stored = find_response(con, response_id, owner, now_ms())
        return stored, events_of(con, response_id)

    return await read_stored(services, read)


async def cancel_response(
    services: Services, owner: str, response_id: str
) -> tuple[dict[str, Any], str]:
    """The response after it was cancelled, and its model; one that has ended stays as it is.
    `NotFound`; `InvalidRequest` for one that was not asked for in the background.
    """
    responses = background_responses(services)
    if (job := await responses.find(response_id, owner)) is not None:
        return await responses.cancel(job), job.model
    response, model = await read_response(services, owner, response_id)
    if response.get("status") in ("queued", "in_progress") and response.get("background"):
        # It is worked on at another node, which stops when it sees this.
        await services.state.record(storing_end({**response, "status": "cancelled"}))
        return await read_response(services, owner, response_id)
    if not response.get("background"):
        status = response.get("status", "completed")
        raise InvalidRequest(
            f"The response is {status}: only one that works in the background can be cancelled."
        )
    return response, model


async def delete_owned_response(services: Services, owner: str, response_id: str) -> None:
    """Deletes a response; one that is running is cancelled first. `NotFound`."""
    responses = background_responses(services)
    if (job := await responses.find(response_id, owner)) is not None:
        await responses.cancel(job)
    # A copy of it that waits in the spool would be stored after it was deleted.
    await response_intake(services).catch_up()
    await services.state.record(lambda con: delete_response(con, response_id, owner, now_ms()))
