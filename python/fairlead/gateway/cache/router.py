"""`/api/cache`: the response cache, summed over the relay workers that hold it.

Prompts and answers are never told: an entry is known by its signature, the digest that is its key.
`DELETE /api/cache` is another cache's, that of scraped pages.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import APIRouter, Query

from fairlead.errors import InvalidRequest
from fairlead.gateway.cache.views import (
    AnswersRemoved,
    CacheEntries,
    CacheEntry,
    CacheOverview,
    CacheStats,
    Pagination,
    entry_view,
    overview_view,
    stats_view,
)
from fairlead.records.provider_names import prefixes, provider_id
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Limit

router = APIRouter(prefix="/api/cache", tags=["cache"])

LISTED_MAX = 20_000

Page = Annotated[int, Query(ge=1, le=LISTED_MAX)]
Named = Annotated[str | None, Query(min_length=1, max_length=300)]
Signature = Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")]
StaleMs = Annotated[
    int | None,
    Query(alias="staleMs", ge=0, le=2**53, description="Minimum age in milliseconds."),
]
KeyId = Annotated[str | None, Query(alias="keyId", min_length=1, max_length=100)]


@router.get("", summary="The response cache at a glance")
async def overview(services: ServicesDep) -> CacheOverview:
    """Entries, hit rate, size on disk, what it has saved since the workers started."""
    settings = await services.state.read(read_operator_settings)
    return overview_view(await _stats(services), settings)


@router.get("/stats", summary="Statistics of the caches")
async def stats(services: ServicesDep) -> CacheStats:
    """The response cache and the idempotency window."""
    return stats_view(await _stats(services))


@router.delete("/stats", summary="Clear the caches")
async def clear(services: ServicesDep) -> AnswersRemoved:
    """After this returns, no earlier answer is used, and answers to requests in progress are not stored."""
    return _removed(await services.command("cache.clear", {}))


@router.get("/entries", summary="Kept answers, newest first")
async def entries(
    services: ServicesDep,
    page: Page = 1,
    limit: Limit = 50,
    model: Named = None,
    provider: Named = None,
    key_id: KeyId = None,
    signature: Signature = None,
    stale_ms: StaleMs = None,
) -> CacheEntries:
    """A page of the entries. With several workers, more than one may hold an answer."""
    if page * limit > LISTED_MAX:
        raise InvalidRequest(
            f"page x limit must be at most {LISTED_MAX}: narrow the list instead.", param="page"
        )
    prefix = await _prefix_of(services, provider)
    wanted = _filter(model, prefix, key_id, signature, stale_ms)
    replies = await services.command("cache.list", {"filter": wanted, "limit": page * limit})
    total = sum(each["total"] for each in replies)
    rows = sorted(
        (row for each in replies for row in each["entries"]),
        key=lambda row: (row["created_ms"], row["signature"]),
        reverse=True,
    )
    shown: list[CacheEntry] = [entry_view(row) for row in rows[(page - 1) * limit : page * limit]]
    return CacheEntries.model_construct(
        entries=shown,
        pagination=Pagination.model_construct(
            page=page, limit=limit, total=total, total_pages=math.ceil(total / limit)
        ),
    )


@router.delete("/entries", summary="Delete the cached answers that match")
async def forget(
    services: ServicesDep,
    model: Named = None,
    provider: Named = None,
    key_id: KeyId = None,
    signature: Signature = None,
    stale_ms: StaleMs = None,
) -> AnswersRemoved:
    """Every sent parameter must match; without any, everything is deleted."""
    prefix = await _prefix_of(services, provider)
    wanted = _filter(model, prefix, key_id, signature, stale_ms)
    if wanted:
        return _removed(await services.command("cache.delete", {"filter": wanted}))
    return await clear(services)


async def _stats(services: Services) -> dict[str, Any]:
    """The counts of all workers as one: numbers are summed."""
    replies = await services.command("cache.stats", {})
    summed: dict[str, Any] = dict(replies[0])
    for each in replies[1:]:
        for name, value in each.items():
            if isinstance(value, int) and name != "idempotency_window_ms":
                summed[name] += value
    return summed


def _removed(replies: list[Any]) -> AnswersRemoved:
    return AnswersRemoved.model_construct(
        removed=sum(each["removed"] for each in replies),
        shared=sum(each["shared"] for each in replies),
    )


async def _prefix_of(services: Services, name: str | None) -> str | None:
    """The prefix of a provider by any of its names. Cached answers are stored under the prefix."""
    if name is None:
        return None

    def read(con: Connection) -> str:
        found = provider_id(con, name)
        return prefixes(con).get(found, found)

    return await services.state.read(read)


def _filter(
    model: str | None,
    provider: str | None,
    key_id: str | None,
    signature: str | None,
    stale_ms: int | None,
) -> dict[str, Any]:
    wanted = {
        "model": model,
        "provider": provider,
        "key_id": key_id,
        "signature": signature,
        "older_than_ms": stale_ms,
    }
    return {name: value for name, value in wanted.items() if value is not None}
