"""`POST /api/settings/purge-request-history`: deletes single requests, and keeps what they add up to."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field, StrictInt

from fairlead.moment import now_ms
from fairlead.store.services import ServicesDep
from fairlead.usage.retention import DAY_MS, delete_before
from fairlead.wire import Wire

router = APIRouter(prefix="/api/settings", tags=["settings"])


class Purge(Wire):
    """Which requests go: those admitted at least so many days ago; 0 is all until now."""

    older_than_days: StrictInt = Field(0, ge=0, le=3650)


class Purged(Wire):
    """How many requests were deleted."""

    deleted: int


@router.post("/purge-request-history", summary="Delete the log of requests, and keep their sums")
async def purge(services: ServicesDep, body: Purge | None = None) -> Purged:
    """Usage, cost and limits by minute, hour and day stay as they are, so that no budget starts
    anew. What relays have not handed over yet is not there to be deleted.
    """
    days = body.older_than_days if body else 0
    return Purged(deleted=await delete_before(services.usage, now_ms() - days * DAY_MS))
