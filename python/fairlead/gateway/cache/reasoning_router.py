"""`/api/cache/reasoning`: the reasoning of models before tool calls, stored by relay workers for providers that
require it back.

The text of the reasoning is never returned: an entry is known by the id of the call that followed.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from fairlead.gateway.cache.views import CacheRemoved
from fairlead.moment import Time, moment_of
from fairlead.records.provider_names import provider_id
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Limit, Offset, Wire

router = APIRouter(prefix="/api/cache/reasoning", tags=["cache"])

LISTED_MAX = 20_000

ToolCallId = Annotated[str | None, Query(alias="toolCallId", min_length=1, max_length=500)]
Provider = Annotated[str | None, Query(min_length=1, max_length=300)]

# Figures that are summed over the workers; the others are equal in all of them.
_SUMMED = ("entries", "bytes", "hits", "misses", "evictions", "max_entries", "max_bytes")


class ReasoningStats(Wire):
    """Over all workers, since they started; bytes and milliseconds."""

    entries: int
    max_entries: int
    bytes: int
    max_bytes: int
    ttl_ms: int
    hits: int = Field(description="Messages that were sent on with what was kept.")
    misses: int = Field(description="Messages that call tools of whose reasoning nothing was kept.")
    evictions: int = Field(
        description="Entries evicted before their expiry, because the cache was full."
    )


class ReasoningEntry(Wire):
    """Metadata of the reasoning before a tool call, without its text."""

    tool_call_id: str
    key_id: str | None
    provider: str
    model: str
    bytes: int
    hits: int
    created_at: Time
    expires_at: Time


class ReasoningCache(Wire):
    stats: ReasoningStats
    entries: list[ReasoningEntry]
    total: int
    limit: int
    offset: int


@router.get("", summary="Stored reasoning of models, newest first")
async def reasoning(
    services: ServicesDep,
    limit: Limit = 50,
    offset: Offset = 0,
    tool_call_id: ToolCallId = None,
    provider: Provider = None,
) -> ReasoningCache:
    """Counts, and a page of the stored entries."""
    named = await _provider_id(services, provider)
    replies = await services.command(
        "reasoning.list",
        {
            "filter": _filter(tool_call_id, named),
            "limit": min(offset + limit, LISTED_MAX),
        },
    )
    stats: dict[str, Any] = dict(replies[0]["stats"])
    for each in replies[1:]:
        for name in _SUMMED:
            stats[name] += each["stats"][name]
    rows = sorted(
        (row for each in replies for row in each["entries"]),
        key=lambda row: (row["created_ms"], row["tool_call_id"]),
        reverse=True,
    )
    return ReasoningCache.model_construct(
        stats=ReasoningStats.model_construct(**stats),
        entries=[_entry(row) for row in rows[offset : offset + limit]],
        total=sum(each["total"] for each in replies),
        limit=limit,
        offset=offset,
    )


@router.delete("", summary="Delete stored reasoning")
async def forget(
    services: ServicesDep, tool_call_id: ToolCallId = None, provider: Provider = None
) -> CacheRemoved:
    """Forgets the reasoning before one tool call, that of one provider, or, without a parameter,
    all of it.
    """
    named = await _provider_id(services, provider)
    replies = await services.command("reasoning.delete", {"filter": _filter(tool_call_id, named)})
    return CacheRemoved.model_construct(removed=sum(each["removed"] for each in replies))


async def _provider_id(services: Services, name: str | None) -> str | None:
    """The id of a provider by any of its names. Reasoning is stored under the id."""
    if name is None:
        return None
    return await services.state.read(lambda con: provider_id(con, name))


def _filter(tool_call_id: str | None, provider: str | None) -> dict[str, str]:
    wanted = {"tool_call_id": tool_call_id, "provider": provider}
    return {name: value for name, value in wanted.items() if value is not None}


def _entry(row: dict[str, Any]) -> ReasoningEntry:
    same = ("tool_call_id", "key_id", "provider", "model", "bytes", "hits")
    return ReasoningEntry.model_construct(
        **{name: row[name] for name in same},
        created_at=moment_of(row["created_ms"]),
        expires_at=moment_of(row["expires_ms"]),
    )
