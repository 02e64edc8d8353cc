"""`/api/cache/near-misses`: questions that were nearly answered from the cache, as relay workers remember
them.

They show what callers said, so none is remembered until `vectorCacheNearMisses` is set, and those of keys
with `noLog` never are.
"""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.gateway.cache.views import CacheRemoved, NearMisses, near_miss_view
from fairlead.store.services import ServicesDep
from fairlead.wire import Limit, Offset

router = APIRouter(prefix="/api/cache/near-misses", tags=["cache"])


@router.get("", summary="Questions that were nearly answered from the cache, newest first")
async def near_misses(services: ServicesDep, limit: Limit = 50, offset: Offset = 0) -> NearMisses:
    """Each with the nearest cached question and the reason why its answer was not returned."""
    replies = await services.command("cache.near_misses", {})
    rows = sorted(
        (row for each in replies for row in each["near_misses"]),
        key=lambda row: int(row["at_ms"]),
        reverse=True,
    )
    return NearMisses.model_construct(
        near_misses=[near_miss_view(row) for row in rows[offset : offset + limit]],
        total=len(rows),
        limit=limit,
        offset=offset,
    )


@router.delete("", summary="Delete the near misses")
async def forget(services: ServicesDep) -> CacheRemoved:
    """Cached answers are not deleted."""
    replies = await services.command("cache.clear_near_misses", {})
    return CacheRemoved.model_construct(removed=sum(each["removed"] for each in replies))
