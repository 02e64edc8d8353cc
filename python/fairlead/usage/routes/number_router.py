"""Statistics: latencies, prompt-cache health, one connection's usage, combos compared."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Query

from fairlead.errors import NotFound
from fairlead.moment import moment_of, now_ms
from fairlead.records.provider_usage import ProviderUsage, find_provider_usage
from fairlead.records.provider_usage_view import show_provider_usage
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.usage.figures.cache_health import read_cache_health
from fairlead.usage.figures.cache_misses import CacheMisses, read_cache_misses
from fairlead.usage.figures.latency import LatencyFilter, read_latency
from fairlead.usage.figures.provider_filter import wanted_provider
from fairlead.usage.routes.cache_views import CacheHealth, CacheModel, miss_sum, miss_view
from fairlead.usage.routes.number_views import (
    ComboMetrics,
    CombosMetrics,
    ConnectionUsage,
    Figures,
    LatencyStats,
    ModelFigures,
    TargetFigures,
    empty_figures,
    figures,
    latency_entry,
    point,
)
from fairlead.usage.sums.breakdown import Breakdown, read_breakdown, read_series
from fairlead.usage.sums.closed_bins import BinsReader, ClosedBins
from fairlead.usage.sums.facts import Filters
from fairlead.usage.sums.ranges import HOUR_MS, SERIES, RangeQuery, last_ms, span_of
from fairlead.usage.sums.span import Span

router = APIRouter(tags=["usage"])

Text = Annotated[str | None, Query(max_length=300)]
ProviderName = Annotated[
    str | None,
    Query(max_length=300, description="A catalogue id, a node's id or a node's prefix."),
]


@router.get("/api/usage/model-latency-stats", summary="Latencies of each provider's models")
async def model_latency_stats(
    services: ServicesDep,
    window_hours: Annotated[int, Query(alias="windowHours", ge=1, le=720)] = 24,
    min_samples: Annotated[int, Query(alias="minSamples", ge=1, le=2**31)] = 1,
    max_rows: Annotated[int, Query(alias="maxRows", ge=1, le=50_000)] = 10_000,
    provider: ProviderName = None,
    model: Text = None,
) -> LatencyStats:
    """Covers the last hours, the busiest first. Only completed requests count."""
    span = last_ms(window_hours * HOUR_MS)
    provider = await wanted_provider(services, provider)
    wanted = LatencyFilter(provider, model, min_samples, max_rows)
    rows = await services.usage.read(lambda con: read_latency(con, span, wanted))
    return LatencyStats.model_construct(
        entries=[latency_entry(row, window_hours) for row in rows],
        window_hours=window_hours,
        generated_at=moment_of(now_ms()),
    )


@router.get("/api/usage/cache-health", summary="How well the providers' prompt caches are used")
async def cache_health(
    services: ServicesDep, length: RangeQuery = "24h", model: Text = None
) -> CacheHealth:
    """The verdict goes by the share of warm calls: from 0.6 `healthy`, from 0.3 `degraded`, else
    `thrash`; `no-data` without calls. `misses` says why prompts were not read from the cache.
    """
    span = span_of(length)

    def read(con: Connection) -> tuple[dict[str, Any], CacheMisses]:
        return read_cache_health(con, span, model), read_cache_misses(con, span, model)

    health, misses = await services.usage.read(read)
    parts = [CacheModel.model_construct(**part) for part in health.pop("by_model")]
    return CacheHealth.model_construct(
        range=length,
        model=model,
        by_model=parts,
        misses=[miss_sum(one) for one in misses.by_cause],
        recent_misses=[miss_view(miss) for miss in misses.newest],
        truncated=misses.is_truncated,
        **health,
    )


@router.get("/api/usage/{connection_id}", summary="Usage of one provider connection")
async def connection_usage(
    services: ServicesDep, connection_id: str, length: RangeQuery = "24h"
) -> ConnectionUsage:
    """Also of a connection that is deleted, as long as its usage is kept."""

    def known(con: Connection) -> tuple[tuple[str, str] | None, ProviderUsage]:
        row = con.execute(
            "SELECT name, provider FROM provider_connections WHERE id = ?", [connection_id]
        ).fetchone()
        provider_usage = find_provider_usage(con, connection_id)
        return (None if row is None else (row[0], row[1])), provider_usage

    span = span_of(length)
    filters = Filters(["connection_id = $connection_id"], {"connection_id": connection_id})

    models = {"provider": "provider", "model": "coalesce(upstream_model, model)"}

    def read(con: Connection) -> tuple[Breakdown, list[dict[str, Any]]]:
        return (
            read_breakdown(con, span, models, filters, reader),
            read_series(con, span, filters, SERIES[length]),
        )

    about, provider_usage = await services.state.read(known)
    reader = BinsReader.over(services.singleton(ClosedBins, ClosedBins))
    found, series = await services.usage.read(read)
    total, by_model = found.by(), found.by(list(models))
    if about is None and not total:
        raise NotFound("There is no connection with this id, and no usage of one in this range.")
    name, provider = about or (None, by_model[0]["provider"])
    return ConnectionUsage.model_construct(
        connection_id=connection_id,
        name=name,
        provider=provider,
        range=length,
        from_=moment_of(span.from_ms),
        to=moment_of(span.until_ms),
        total=Figures.model_construct(**(figures(total[0]) if total else empty_figures())),
        by_model=[
            ModelFigures.model_construct(model=row["model"], **figures(row)) for row in by_model
        ],
        series=[point(row) for row in series],
        provider_usage=None
        if provider_usage.asked_at_ms is None
        else show_provider_usage(provider_usage),
    )


@router.get("/api/combos/metrics", summary="Combos and their targets, compared")
async def combos_metrics(
    services: ServicesDep,
    length: RangeQuery = "24h",
    combo_name: Annotated[str | None, Query(alias="comboName", max_length=300)] = None,
) -> CombosMetrics:
    """Every combo that there is or that was called in the range, the busiest first."""

    def names(con: Connection) -> list[str]:
        return [row[0] for row in con.execute("SELECT name FROM combos ORDER BY name").fetchall()]

    span = span_of(length)
    combo_names = await services.state.read(names)
    reader = BinsReader.over(services.singleton(ClosedBins, ClosedBins))
    metrics = await services.usage.read(lambda con: _known_combos(con, span, combo_name, reader))
    called = {one.combo_name for one in metrics}
    quiet = [name for name in combo_names if name not in called and combo_name in (None, name)]
    if combo_name is not None and not metrics and not quiet:
        raise NotFound("There is no combo with this name.", param="comboName")
    unused = [
        ComboMetrics.model_construct(
            combo_name=name, strategies=[], targets=[], shadows=[], **empty_figures()
        )
        for name in quiet
    ]
    return CombosMetrics.model_construct(
        metrics=[*metrics, *unused],
        range=length,
        from_=moment_of(span.from_ms),
        to=moment_of(span.until_ms),
    )


def _known_combos(
    con: Connection, span: Span, combo_name: str | None, reader: BinsReader
) -> list[ComboMetrics]:
    """Combos as they were read before, if no record has arrived since."""
    return reader.answer(
        ("combos", combo_name),
        reader.parts(con, span, "day"),
        lambda: _combos(con, span, combo_name, reader),
        lambda metrics: sum(1 + len(one.targets) + len(one.shadows) for one in metrics),
    )


def _combos(
    con: Connection, span: Span, combo_name: str | None, reader: BinsReader
) -> list[ComboMetrics]:
    conditions, bound = ["combo IS NOT NULL"], {}
    if combo_name is not None:
        conditions, bound = ["combo = $combo"], {"combo": combo_name}
    groups = {
        "combo": "combo",
        "strategy": "strategy",
        "provider": "provider",
        "model": "coalesce(upstream_model, model)",
        "connection_id": "connection_id",
    }
    # One read of both: a statement is planned for longer than it runs.
    every = read_breakdown(con, span, groups, Filters(conditions, bound), reader)
    is_shadow = pl.col("strategy").fill_null("") == "shadow"
    found, of_shadows = every.where(~is_shadow), every.where(is_shadow)
    target = ["combo", "provider", "model", "connection_id"]
    targets, shadows = found.by(target), of_shadows.by(target)
    strategies = found.sums_by(["combo", "strategy"])
    return [
        ComboMetrics.model_construct(
            combo_name=combo["combo"],
            strategies=[
                row["strategy"]
                for row in strategies
                if row["combo"] == combo["combo"] and row["strategy"]
            ],
            targets=_targets(targets, combo),
            shadows=_targets(shadows, combo),
            **figures(combo),
        )
        for combo in found.by(["combo"])
    ]


def _targets(rows: list[dict[str, Any]], combo: dict[str, Any]) -> list[TargetFigures]:
    return [
        TargetFigures.model_construct(
            provider=row["provider"],
            model=row["model"],
            connection_id=row["connection_id"],
            share=row["requests"] / combo["requests"],
            **figures(row),
        )
        for row in rows
        if row["combo"] == combo["combo"] and row["provider"]
    ]
