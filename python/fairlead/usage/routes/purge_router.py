"""`POST /api/settings/purge-request-history`: deletes single requests, and keeps what they add up to."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from pydantic import Field, StrictInt

from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.meta import PURGED_BEFORE, read_meta, write_meta
from fairlead.store.services import ServicesDep
from fairlead.usage.bodies.body_keeping import body_keeper_of
from fairlead.usage.ingestion.retention import DAY_MS, delete_before
from fairlead.wire import Wire

router = APIRouter(prefix="/api/settings", tags=["settings"])


class Purge(Wire):
    """Which requests go: those admitted at least so many days ago; 0 is all until now."""

    older_than_days: StrictInt = Field(0, ge=0, le=3650)


class Purged(Wire):
    """How many requests were deleted, and of how many the bodies that were kept."""

    deleted: int
    deleted_bodies: int


@router.post("/purge-request-history", summary="Delete the log of requests, and keep their sums")
async def purge(services: ServicesDep, body: Purge | None = None) -> Purged:
    """Sums of usage, cost and limits by minute, hour and day are kept, so no budget starts again. Records that
    relays have not sent yet are not deleted.
    """
    before_ms = now_ms() - (body.older_than_days if body else 0) * DAY_MS
    # Bodies first: an interruption leaves no bodies of requests that nobody finds any more.
    deleted_bodies = await body_keeper_of(services).delete_before(before_ms)
    deleted = await delete_before(services.usage, before_ms)
    if services.peers is not None:
        await services.state.record(partial(_note, before_ms))
    return Purged.model_construct(deleted=deleted, deleted_bodies=deleted_bodies)


def _note(before_ms: int, con: Connection) -> None:
    """Stores the time for the other nodes, whose usage databases have the same requests."""
    noted = read_meta(con, PURGED_BEFORE)
    if noted is None or int(noted) < before_ms:
        write_meta(con, PURGED_BEFORE, str(before_ms))
