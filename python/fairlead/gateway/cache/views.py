"""The answers of `/api/cache`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fairlead.moment import Time, moment_of
from fairlead.store.operator_settings import OperatorSettings
from fairlead.wire import Wire

PICOS_PER_USD = 1_000_000_000_000

VectorState = Literal["off", "missing", "loading", "ready", "failed"]


class SemanticCacheStats(Wire):
    """The sizes are entries; `hitRate` is from 0 to 1."""

    memory_size: int
    memory_max_size: int
    db_size: int
    hit_rate: float
    memory_bytes: int
    memory_max_bytes: int
    db_bytes: int
    db_max_bytes: int
    evictions: int


class IdempotencyStats(Wire):
    active_keys: int
    window_ms: int


class CacheStats(Wire):
    semantic_cache: SemanticCacheStats
    idempotency: IdempotencyStats


class SemanticCacheOverview(Wire):
    """Since the workers started; `hits` are `exactHits`, `sharedHits`, `vectorHits` and `joined`."""

    memory_entries: int
    db_entries: int
    total_entries: int
    disk_bytes: int
    hits: int
    exact_hits: int
    shared_hits: int = Field(
        description="Answers that another worker had left in the shared store."
    )
    vector_hits: int
    joined: int
    misses: int
    hit_rate: float
    tokens_saved: int
    cost_saved_usd: float


class VectorOverview(Wire):
    state: VectorState
    vectors: int = Field(description="Questions that can be found by their meaning.")
    threshold: float


class CacheConfig(Wire):
    semantic_cache_enabled: bool
    semantic_cache_ttl_ms: int
    vector_cache_enabled: bool
    vector_cache_threshold: float


class CacheOverview(Wire):
    semantic_cache: SemanticCacheOverview
    vector_cache: VectorOverview
    idempotency: IdempotencyStats
    config: CacheConfig


class CacheEntry(Wire):
    """A kept answer, without what was asked and answered."""

    signature: str
    key_id: str | None
    endpoint: str
    model: str
    provider: str
    upstream_model: str | None
    stream: bool
    tokens: int
    cost_usd: float
    hits: int
    in_memory: bool
    on_disk: bool
    bytes: int | None = Field(description="Size of the body; null while it is only on disk.")
    created_at: Time
    expires_at: Time


class Pagination(Wire):
    page: int
    limit: int
    total: int
    total_pages: int


class CacheEntries(Wire):
    entries: list[CacheEntry]
    pagination: Pagination


class CacheRemoved(Wire):
    removed: int


class AnswersRemoved(CacheRemoved):
    """`removed` of the workers of this node; workers of other nodes forget the same."""

    shared: int = Field(description="The store that workers share.")


def stats_view(stats: dict[str, Any]) -> CacheStats:
    """The sums of all workers under the names of `/api/cache/stats`."""
    return CacheStats.model_construct(
        semantic_cache=SemanticCacheStats.model_construct(
            memory_size=stats["memory_entries"],
            memory_max_size=stats["memory_max_entries"],
            db_size=stats["disk_entries"],
            hit_rate=_hit_rate(stats),
            memory_bytes=stats["memory_bytes"],
            memory_max_bytes=stats["memory_max_bytes"],
            db_bytes=stats["disk_bytes"],
            db_max_bytes=stats["disk_max_bytes"],
            evictions=stats["evictions"],
        ),
        idempotency=_idempotency(stats),
    )


def overview_view(stats: dict[str, Any], settings: OperatorSettings) -> CacheOverview:
    """The sums of all workers under the names of `/api/cache`."""
    return CacheOverview.model_construct(
        semantic_cache=SemanticCacheOverview.model_construct(
            memory_entries=stats["memory_entries"],
            db_entries=stats["disk_entries"],
            total_entries=stats["entries"],
            disk_bytes=stats["disk_bytes"],
            hits=_hits(stats),
            exact_hits=stats["exact_hits"],
            shared_hits=stats["shared_hits"],
            vector_hits=stats["vector_hits"],
            joined=stats["joined"],
            misses=stats["misses"],
            hit_rate=_hit_rate(stats),
            tokens_saved=stats["tokens_saved"],
            cost_saved_usd=stats["picos_saved"] / PICOS_PER_USD,
        ),
        vector_cache=VectorOverview.model_construct(
            state=stats["vector_state"],
            vectors=stats["vectors"],
            threshold=settings.vector_cache_threshold,
        ),
        idempotency=_idempotency(stats),
        config=CacheConfig.model_construct(
            semantic_cache_enabled=settings.semantic_cache_enabled,
            semantic_cache_ttl_ms=settings.semantic_cache_ttl_ms,
            vector_cache_enabled=settings.vector_cache_enabled,
            vector_cache_threshold=settings.vector_cache_threshold,
        ),
    )


def entry_view(row: dict[str, Any]) -> CacheEntry:
    """A cache entry, from a worker's report of it."""
    same = (
        "signature",
        "key_id",
        "model",
        "provider",
        "upstream_model",
        "stream",
        "tokens",
        "hits",
        "in_memory",
        "on_disk",
        "bytes",
    )
    return CacheEntry.model_construct(
        **{name: row[name] for name in same},
        endpoint=row["route"],
        cost_usd=row["cost_picos"] / PICOS_PER_USD,
        created_at=moment_of(row["created_ms"]),
        expires_at=moment_of(row["expires_ms"]),
    )


def _hits(stats: dict[str, Any]) -> int:
    return int(stats["exact_hits"] + stats["shared_hits"] + stats["vector_hits"] + stats["joined"])


def _hit_rate(stats: dict[str, Any]) -> float:
    # A request that joined a call in progress was counted as a miss first.
    looked = stats["exact_hits"] + stats["shared_hits"] + stats["vector_hits"] + stats["misses"]
    return round(_hits(stats) / looked, 4) if looked else 0.0


def _idempotency(stats: dict[str, Any]) -> IdempotencyStats:
    return IdempotencyStats.model_construct(
        active_keys=stats["idempotency_keys"], window_ms=stats["idempotency_window_ms"]
    )
