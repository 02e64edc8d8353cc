"""Views of the use of the providers' prompt caches."""

from __future__ import annotations

from pydantic import Field

from fairlead.moment import Time, moment_of
from fairlead.usage.figures.cache_health import Verdict
from fairlead.usage.figures.cache_misses import Cause, ChangedBy, Miss, MissSum
from fairlead.usage.routes.views import View


class CacheModel(View):
    """One model's share of the prompt cache."""

    model: str | None
    calls: int
    cache_read_total: int
    cache_write_total: int
    write_read_ratio: float
    heavy_write_calls: int
    verdict: Verdict


class CacheMissSum(View):
    """All calls that sent a prompt again for the same reason, although the provider's cache could have had it."""

    cause: Cause
    calls: int
    tokens: int = Field(description="Input that was not read from the cache.")
    cost_usd_micros: int = Field(description="The cost that reading it would have saved.")
    cost_usd: float


class CacheMiss(View):
    """One of these calls."""

    request_id: str
    timestamp: Time
    model: str | None
    cause: Cause
    changed_by: ChangedBy
    first_difference: str | None = Field(
        description="The first part of the prompt that is not as in the call before: `tools`, `system`, "
        "`messages[3]`; or `model`, `connection`. Null if the prompt is the same."
    )
    tokens: int
    cost_usd_micros: int
    cost_usd: float


class CacheHealth(View):
    """How the providers' prompt caches are used; tokens."""

    range: str
    model: str | None
    total_calls: int
    cache_read_total: int
    cache_write_total: int
    write_read_ratio: float
    warm_calls: int
    cold_calls: int
    rewrite_calls: int
    uncached_calls: int
    write_p50: float | None
    write_p90: float | None
    write_p99: float | None
    write_max: int | None
    heavy_write_threshold: float
    heavy_write_calls: int
    heavy_write_call_share: float
    heavy_write_token_share: float
    verdict: Verdict
    by_model: list[CacheModel]
    misses: list[CacheMissSum] = Field(
        description="By cause, the most expensive first. Calls of models that read cached input at a lower price."
    )
    recent_misses: list[CacheMiss] = Field(description="The newest 100.")
    truncated: bool = Field(
        description="Whether `misses` leaves out older calls: at most 200,000 are compared. All other figures are "
        "of every call."
    )


def miss_sum(one: MissSum) -> CacheMissSum:
    return CacheMissSum.model_construct(**one._asdict(), cost_usd=one.cost_usd_micros / 1e6)


def miss_view(miss: Miss) -> CacheMiss:
    return CacheMiss.model_construct(
        request_id=miss.call.request_id,
        timestamp=moment_of(miss.call.ts_ms),
        model=miss.call.upstream_model or miss.call.model,
        cause=miss.difference.cause,
        changed_by=miss.difference.changed_by,
        first_difference=miss.difference.place,
        tokens=miss.tokens,
        cost_usd_micros=miss.cost_usd_micros,
        cost_usd=miss.cost_usd_micros / 1e6,
    )
