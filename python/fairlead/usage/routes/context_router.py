"""`/api/context/analytics`: what was saved by making conversations shorter."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from fairlead.moment import Time, moment_of
from fairlead.money import usd_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.usage.figures.context_savings import Group, read_rejections, read_savings, read_total
from fairlead.usage.routes.views import View
from fairlead.usage.sums.ranges import RangeQuery, span_of

router = APIRouter(tags=["context"])


class Savings(View):
    """Sums over requests for which a pipeline ran. Tokens are those of the conversations' texts."""

    requests: int
    shortened: int
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    saved_percent: float
    saved_usd_micros: int
    saved_usd: float
    mean_ms: float


class GroupSavings(Savings):
    name: str | None


class ContextAnalytics(View):
    """Savings of a range, and how often texts stayed as they were, by `engine:reason`."""

    range: str
    from_: Time
    to: Time
    group_by: str
    total: Savings
    groups: list[GroupSavings]
    rejected: dict[str, int]


@router.get("/api/context/analytics", summary="Savings by compression")
async def analytics(
    services: ServicesDep,
    length: RangeQuery = "24h",
    group_by: Annotated[Group, Query(alias="groupBy")] = "pipeline",
) -> ContextAnalytics:
    """From the log of requests, so as far back as that is kept."""
    span = span_of(length)

    def read(con: Connection) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, int]]:
        return (
            read_total(con, span),
            read_savings(con, span, group_by),
            read_rejections(con, span),
        )

    total, groups, rejected = await services.usage.read(read)
    return ContextAnalytics.model_construct(
        range=length,
        from_=moment_of(span.from_ms),
        to=moment_of(span.until_ms),
        group_by=group_by,
        total=Savings.model_construct(**_shown(total)),
        groups=[GroupSavings.model_construct(**_shown(row)) for row in groups],
        rejected=rejected,
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    before, after = row["tokens_before"], row["tokens_after"]
    return {
        **row,
        "tokens_saved": before - after,
        "saved_percent": round((before - after) / before * 100, 2) if before else 0.0,
        "saved_usd": usd_of(row["saved_usd_micros"]),
        "mean_ms": round(row["mean_ms"], 3),
    }
