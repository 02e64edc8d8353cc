"""A response of an owner wherever it is: worked on, or kept."""

from __future__ import annotations

from typing import Any

import orjson

from fairlead.errors import InvalidRequest
from fairlead.gateway.responses.background import works_of
from fairlead.gateway.responses.table import find, forget
from fairlead.moment import now_ms
from fairlead.store.services import Services


async def read_response(
    services: Services, owner: str, response_id: str
) -> tuple[dict[str, Any], str]:
    """It as it is now, and the model as its caller named it. `NotFound`."""
    if (work := works_of(services).find(response_id, owner)) is not None:
        return work.response, work.model
    kept = await services.state.read(lambda con: find(con, response_id, owner, now_ms()))
    return orjson.loads(kept.response), kept.model


async def cancel_response(
    services: Services, owner: str, response_id: str
) -> tuple[dict[str, Any], str]:
    """As `read_response`, once it has ended. One that has ended stays as it is; `InvalidRequest` for
    one that was not asked for in the background.
    """
    works = works_of(services)
    if (work := works.find(response_id, owner)) is not None:
        return await works.cancel(work), work.model
    told, model = await read_response(services, owner, response_id)
    if not told.get("background"):
        status = told.get("status", "completed")
        raise InvalidRequest(
            f"The response is {status}: only one that works in the background can be cancelled."
        )
    return told, model


async def forget_response(services: Services, owner: str, response_id: str) -> None:
    """It is gone; one that is worked on is cancelled first. `NotFound`."""
    works = works_of(services)
    if (work := works.find(response_id, owner)) is not None:
        await works.cancel(work)
    await services.state.record(lambda con: forget(con, response_id, owner, now_ms()))
