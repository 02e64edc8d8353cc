"""The MCP tool for usage, for people who manage the gateway."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fairlead.errors import InvalidRequest
from fairlead.mcp.tool import Call, Tool
from fairlead.moment import moment_of, now_ms
from fairlead.usage.routes.views import History, show_history_row
from fairlead.usage.sums.closed_bins import BinsReader, ClosedBins
from fairlead.usage.sums.history import BUCKETS, Dimension, HistoryQuery, read_history
from fairlead.usage.sums.span import Span
from fairlead.wire import Wire

DAY_MS = 86_400_000


class ReadUsage(Wire):
    days: Annotated[int, Field(strict=True, ge=1, le=366)] = Field(
        default=7, description="How many days back, today with them."
    )
    group_by: Annotated[list[Dimension], Field(min_length=1, max_length=8)] = Field(
        default=["day", "provider", "model"], description="One of hour, day and month at most."
    )
    limit: Annotated[int, Field(strict=True, ge=1, le=500)] = 100
    offset: Annotated[int, Field(strict=True, ge=0, le=2**31)] = 0


async def _usage(call: Call, given: ReadUsage) -> History:
    until_ms = now_ms() + 1
    span = Span(until_ms - given.days * DAY_MS, until_ms, is_open=True)
    groups = list(dict.fromkeys(given.group_by))
    if len(BUCKETS.intersection(groups)) > 1:
        raise InvalidRequest(
            "groupBy must name one of hour, day and month at most.", param="groupBy"
        )
    query = HistoryQuery(span, groups, limit=given.limit, offset=given.offset)
    reader = BinsReader.over(call.services.singleton(ClosedBins, ClosedBins))
    page = await call.services.usage.read(lambda con: read_history(con, query, reader))
    return History.model_construct(
        history=[show_history_row(row) for row in page.rows],
        total=page.total,
        totals=None,
        series=None,
        limit=given.limit,
        offset=given.offset,
        from_=moment_of(span.from_ms),
        to=moment_of(span.until_ms),
        group_by=groups,
    )


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "gateway_usage",
        "See the gateway's usage",
        "Requests, tokens, cost and latency over time, in groups.",
        ReadUsage,
        History,
        _usage,
        reads=True,
        needs_manage=True,
        group="gateway",
    ),
)
