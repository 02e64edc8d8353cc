"""Statistics as the API shows them. Latencies are milliseconds, shares 0 to 1, money micro-dollars
and US dollars.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fairlead.moment import Time, moment_of
from fairlead.money import usd_of
from fairlead.records.provider_usage_view import ProviderUsageView
from fairlead.usage.routes.views import UNPRICED, View
from fairlead.usage.sums.history_series import SUMMED


class LatencyEntry(View):
    """One model of one provider."""

    provider: str
    model: str | None
    key: str = Field(description="`provider/model`.")
    total_requests: int
    successful_requests: int
    success_rate: float
    avg_latency_ms: float | None
    p50_latency_ms: float | None
    p95_latency_ms: float | None
    p99_latency_ms: float | None
    latency_std_dev: float | None
    avg_ttft_ms: float | None = Field(description="To the first byte of the provider's answer.")
    avg_e2e_latency_ms: float | None = Field(alias="avgE2ELatencyMs")
    avg_tokens_per_second: float | None = Field(
        description="For streams: output tokens over the time from the first byte to the last."
    )
    window_hours: int


class LatencyStats(View):
    entries: list[LatencyEntry]
    window_hours: int
    generated_at: Time


class Figures(View):
    """Totals of a group of requests."""

    requests: int
    errors: int
    success_rate: float | None
    avg_attempts: float | None = Field(description="Upstream attempts for each request.")
    tokens_input: int
    tokens_output: int
    tokens_cached: int
    tokens_reasoning: int
    tokens_cache_write: int
    cost_usd_micros: int
    cost_usd: float
    unpriced_requests: int = Field(description=UNPRICED)
    cache_hits: int
    cost_saved_usd_micros: int
    avg_latency_ms: float | None
    p50_latency_ms: float | None
    p95_latency_ms: float | None
    p99_latency_ms: float | None
    last_used_at: Time | None


class ModelFigures(Figures):
    model: str | None


class Point(View):
    """One bucket of a series."""

    bucket: Time
    requests: int
    errors: int
    tokens_input: int
    tokens_output: int
    cost_usd_micros: int
    unpriced_requests: int = Field(description=UNPRICED)
    avg_latency_ms: float | None


class ConnectionUsage(View):
    connection_id: str
    name: str | None
    provider: str | None
    range: str
    from_: Time = Field(alias="from")
    to: Time
    total: Figures
    by_model: list[ModelFigures]
    series: list[Point]
    provider_usage: ProviderUsageView | None = Field(
        description="The provider's own usage figures, if it has a route for them and was asked."
    )


class TargetFigures(Figures):
    provider: str | None
    model: str | None
    connection_id: str | None
    share: float = Field(description="Share of the combo's requests.")


class ComboMetrics(Figures):
    combo_name: str
    strategies: list[str]
    targets: list[TargetFigures]
    shadows: list[TargetFigures] = Field(
        description="Models that were called for comparison; no other figure of the combo includes them."
    )


class CombosMetrics(View):
    metrics: list[ComboMetrics]
    range: str
    from_: Time = Field(alias="from")
    to: Time


def figures(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of `Figures` from a row of `breakdown.read_groups`."""
    requests, good = row["requests"], row["requests"] - row["errors"]
    last_ms = row["last_ts_ms"]
    counted = (
        "requests",
        "errors",
        "tokens_input",
        "tokens_output",
        "tokens_cached",
        "tokens_reasoning",
        "tokens_cache_write",
        "cost_usd_micros",
        "unpriced_requests",
        "cache_hits",
        "cost_saved_usd_micros",
    )
    return {
        **{name: row[name] for name in counted},
        "success_rate": good / requests if requests else None,
        "avg_attempts": row["attempts"] / requests if requests else None,
        "cost_usd": usd_of(row["cost_usd_micros"]),
        "avg_latency_ms": mean_ms(row["ok_latency_us"], good),
        **{f"p{share}_latency_ms": ms(row[f"p{share}"]) for share in (50, 95, 99)},
        "last_used_at": None if last_ms is None else moment_of(last_ms),
    }


def empty_figures() -> dict[str, Any]:
    """The fields of `Figures` for no requests."""
    zeros = dict.fromkeys(Figures.model_fields, 0)
    return {
        **zeros,
        "cost_usd": 0.0,
        **{
            name: None
            for name, field in Figures.model_fields.items()
            if type(None) in getattr(field.annotation, "__args__", ())
        },
    }


def point(row: dict[str, Any]) -> Point:
    """A bucket from a row of `breakdown.read_series`."""
    return Point.model_construct(
        bucket=moment_of(row["bucket_ms"]),
        avg_latency_ms=mean_ms(row["ok_latency_us"], row["requests"] - row["errors"]),
        **{name: row[name] for name in SUMMED},
    )


def latency_entry(row: dict[str, Any], window_hours: int) -> LatencyEntry:
    """A row of `latency.read_latency`."""
    good = row["requests"] - row["errors"]
    generation_us = row["generation_us"]
    mean = mean_ms(row["ok_latency_us"], good)
    return LatencyEntry.model_construct(
        provider=row["provider"],
        model=row["model"],
        key=f"{row['provider']}/{row['model']}",
        total_requests=row["requests"],
        successful_requests=good,
        success_rate=good / row["requests"],
        avg_latency_ms=mean,
        p50_latency_ms=ms(row["p50"]),
        p95_latency_ms=ms(row["p95"]),
        p99_latency_ms=ms(row["p99"]),
        latency_std_dev=ms(row["deviation"]),
        avg_ttft_ms=mean_ms(row["ttft_us"], row["ttft_requests"]),
        avg_e2e_latency_ms=mean,
        avg_tokens_per_second=(
            round(row["generation_tokens"] * 1e6 / generation_us, 3) if generation_us else None
        ),
        window_hours=window_hours,
    )


def ms(us: float | None) -> float | None:
    """Microseconds as milliseconds, to the microsecond."""
    return None if us is None else round(us / 1000, 3)


def mean_ms(sum_us: int, count: int) -> float | None:
    """The mean of a sum of microseconds, in milliseconds; None for no values."""
    return ms(sum_us / count) if count else None
