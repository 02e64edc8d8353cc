"""`/api/usage`: usage over time, and single requests."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple, get_args

import orjson
from fastapi import APIRouter, Depends, Query, Response

from fairlead.calls.caller import Caller, CallerDep, confined_to, own_key_id
from fairlead.errors import InvalidRequest
from fairlead.moment import LATEST_MS, iso, moment_of, ms_of, now_ms
from fairlead.records.kept_bodies import BodyName
from fairlead.store.services import ServicesDep
from fairlead.usage.bodies.body_keeping import body_keeper_of
from fairlead.usage.figures.provider_filter import wanted_provider
from fairlead.usage.log import LogFilter, Page, PageCursor, read_log
from fairlead.usage.log import Order as LogOrder
from fairlead.usage.routes.views import (
    History,
    Logs,
    RequestLogs,
    history_json,
    series_json,
    show_log_row,
    show_request_log_row,
)
from fairlead.usage.sums.closed_bins import BinsReader, ClosedBins
from fairlead.usage.sums.history import (
    BUCKETS,
    Dimension,
    HistoryFilter,
    HistoryQuery,
    Order,
    read_history,
)
from fairlead.usage.sums.history_series import (
    BUCKETS_MAX,
    SeriesBucket,
    SeriesQuery,
    buckets_of,
    read_with_series,
)
from fairlead.usage.sums.span import Span
from fairlead.wire import Limit, Offset

router = APIRouter(prefix="/api/usage", tags=["usage"])

DAY_MS = 86_400_000
# A report over millions of sessions takes seconds.
REPORT_DEADLINE_S = 30.0
DEFAULT_DAYS = 7
DEFAULT_GROUPS = "day,provider,model"

Outcome = Literal["completed", "upstream_failed", "client_gone", "refused", "shed", "drained"]
From = Annotated[
    str | None,
    Query(alias="from", max_length=40, description="ISO 8601, or UTC milliseconds; inclusive."),
]
To = Annotated[
    str | None, Query(max_length=40, description="ISO 8601, or UTC milliseconds; exclusive.")
]
Text = Annotated[str | None, Query(max_length=300)]
ProviderName = Annotated[
    str | None,
    Query(max_length=300, description="A catalogue id, a node's id or a node's prefix."),
]
KeyId = Annotated[str | None, Query(alias="keyId", max_length=300)]
GroupId = Annotated[
    str | None,
    Query(alias="groupId", max_length=300, description="Calls of this group and those below it."),
]
Tag = Annotated[
    str | None,
    Query(max_length=64, description="Calls of keys with this tag, their own or a group's."),
]
ConnectionId = Annotated[str | None, Query(alias="connectionId", max_length=300)]
RequestId = Annotated[str | None, Query(alias="requestId", max_length=300)]
SessionTag = Annotated[str | None, Query(alias="sessionTag", max_length=300)]
SessionId = Annotated[str | None, Query(alias="sessionId", max_length=300)]
Session = Annotated[
    str | None,
    Query(max_length=300, description="A session's tag, or the id of one without a tag."),
]
ErrorKind = Annotated[str | None, Query(alias="errorKind", max_length=300)]
ErrorText = Annotated[
    str | None,
    Query(
        alias="errorText",
        min_length=1,
        max_length=300,
        description="A part of the message that the caller received, or of what a provider answered; case is ignored.",
    ),
]
Search = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=300,
        description="The id of a request, of its session or of its trace, or a part of a text as for `errorText`.",
    ),
]
After = Annotated[
    str | None,
    Query(
        max_length=400, description="The `next` of a page: rows that follow it. Goes before offset."
    ),
]


# Async, because FastAPI runs a plain function in a thread.
async def _history_filter(
    services: ServicesDep,
    caller: CallerDep,
    *,
    key_id: KeyId = None,
    model: Text = None,
    provider: ProviderName = None,
    connection_id: ConnectionId = None,
    combo: Text = None,
    endpoint: Text = None,
    request_id: RequestId = None,
    session_tag: SessionTag = None,
    session_id: SessionId = None,
    status: Annotated[int | None, Query(ge=100, le=999)] = None,
    outcome: Outcome | None = None,
    group_id: GroupId = None,
    tag: Tag = None,
    error_kind: ErrorKind = None,
    session: Session = None,
) -> HistoryFilter:
    key_id = own_key_id(caller.principal, "read:usage", key_id)
    return HistoryFilter(
        key_id,
        model,
        await wanted_provider(services, provider),
        connection_id,
        combo,
        endpoint,
        request_id,
        session_tag,
        session_id,
        status,
        outcome,
        group_id,
        tag,
        error_kind,
        session,
    )


HistoryFilterDep = Annotated[HistoryFilter, Depends(_history_filter)]


class HistoryChoice(NamedTuple):
    """The part of a `HistoryQuery` that defines the groups, in the order of its fields."""

    order: Order
    top: int | None
    has_percentiles: bool
    has_totals: bool


async def _history_choice(
    *,
    order: Annotated[
        Order, Query(alias="orderBy", description="The largest by this come first in each bucket.")
    ] = "requests",
    top: Annotated[
        int | None,
        Query(
            ge=1,
            le=100,
            description="So many groups, the largest of the whole time by `orderBy`; the sum of the others "
            "is one row more for each bucket, whose `isOther` is true. Without percentiles.",
        ),
    ] = None,
    percentiles: Annotated[bool, Query(description="Whether to tell percentiles.")] = True,
    totals: Annotated[bool, Query(description="Whether to tell the sum of all groups.")] = False,
) -> HistoryChoice:
    return HistoryChoice(order, top, percentiles, totals)


HistoryChoiceDep = Annotated[HistoryChoice, Depends(_history_choice)]


async def _series(
    *,
    bucket: Annotated[
        SeriesBucket | None,
        Query(
            alias="series",
            description="Also the largest groups by `orderBy` over time, in `series`: by minute, quarter of an "
            "hour, hour or day. With neither of them in `groupBy`, without `top`, and for at most 1500 buckets.",
        ),
    ] = None,
    top: Annotated[
        int,
        Query(
            alias="seriesTop", ge=1, le=100, description="How many groups are listed separately."
        ),
    ] = 7,
) -> SeriesQuery | None:
    return None if bucket is None else SeriesQuery(bucket, top)


SeriesDep = Annotated[SeriesQuery | None, Depends(_series)]


@router.get("/history", response_model=History, summary="Usage over time, in groups")
async def history(
    services: ServicesDep,
    *,
    from_: From = None,
    to: To = None,
    group_by: Annotated[
        str,
        Query(
            alias="groupBy",
            max_length=200,
            description="One of minute, hour, day and month, and any of the rest, by commas; `total` "
            "alone makes one group of all. `session`, `status` and `reason`, as the filters by "
            "request, session, status, outcome and kind of error, are read from the requests themselves: as far "
            "back as `usageRetentionDays`, and without keys that ask for no log.",
        ),
    ] = DEFAULT_GROUPS,
    filters: HistoryFilterDep,
    choice: HistoryChoiceDep,
    series: SeriesDep,
    limit: Limit = 50,
    offset: Offset = 0,
) -> Response:
    """Without `to` it is until now. An answer without percentiles takes half the time."""
    groups = _dimensions(group_by)
    span = span_of(from_, to)
    from_ms, until_ms = span.from_ms, span.until_ms
    query = HistoryQuery(span, groups, filters, limit, offset, *choice)
    reader = BinsReader.over(services.singleton(ClosedBins, ClosedBins))
    shown = None
    if series is None:
        page = await services.usage.read(
            lambda con: read_history(con, query, reader), deadline_s=REPORT_DEADLINE_S
        )
    else:
        _check_series(query, series)
        page, of_groups = await services.usage.read(
            lambda con: read_with_series(con, query, series, reader),
            deadline_s=REPORT_DEADLINE_S,
        )
        shown = series_json(of_groups)
    answer = {
        "history": [history_json(row) for row in page.rows],
        "total": page.total,
        "totals": history_json(page.totals) if page.totals else None,
        "series": shown,
        "limit": limit,
        "offset": offset,
        "from": iso(moment_of(from_ms)),
        "to": iso(moment_of(until_ms)),
        "groupBy": groups,
    }
    return Response(orjson.dumps(answer), media_type="application/json")


def span_of(from_: str | None, to: str | None) -> Span:
    """The time that a caller asks for: until now without `to`, and the last seven days without `from`."""
    until_ms = _moment_ms(to, "to") if to else now_ms() + 1
    from_ms = _moment_ms(from_, "from") if from_ else max(until_ms - DEFAULT_DAYS * DAY_MS, 0)
    if from_ms >= until_ms:
        end = "to" if to else "the current time, because the request has no `to`"
        raise InvalidRequest(f"from must be before {end}.", param="from")
    return Span(from_ms, until_ms, is_open=not to)


def _check_series(query: HistoryQuery, series: SeriesQuery) -> None:
    if query.top is not None or not BUCKETS.isdisjoint(query.group_by):
        raise InvalidRequest(
            "series goes without top, and without minute, hour, day and month in groupBy.",
            param="series",
        )
    if len(buckets_of(query, series.bucket)) > BUCKETS_MAX:
        raise InvalidRequest(
            f"The time has more than {BUCKETS_MAX} buckets: ask for longer ones.", param="series"
        )


async def _log_filter(
    caller: CallerDep,
    subject: HistoryFilterDep,
    *,
    error_text: ErrorText = None,
    search: Search = None,
    from_: From = None,
    to: To = None,
) -> LogFilter:
    return LogFilter(
        **asdict(subject),
        error_text=None if _is_confined(caller) else error_text,
        error_message=error_text if _is_confined(caller) else None,
        search=None if _is_confined(caller) else search,
        own_search=search if _is_confined(caller) else None,
        from_ms=_moment_ms(from_, "from") if from_ else None,
        until_ms=_moment_ms(to, "to") if to else None,
    )


def _is_confined(caller: Caller) -> bool:
    """Whether the caller sees its own rows only, without what providers said to the operator."""
    return confined_to(caller.principal, "read:usage") is not None


FilterDep = Annotated[LogFilter, Depends(_log_filter)]


async def _page(
    limit: Limit = 50,
    offset: Offset = 0,
    after: After = None,
    order: Annotated[
        LogOrder,
        Query(
            alias="orderBy",
            description="The newest or the largest first. Only the order of time has `next` and `after`.",
        ),
    ] = "time",
) -> Page:
    if after and order != "time":
        raise InvalidRequest("after goes with the order of time alone; use offset.", param="after")
    return Page(limit, offset, _parse_cursor(after) if after else None, order)


PageDep = Annotated[Page, Depends(_page)]


@router.get("/logs", summary="Settled requests, newest first")
async def logs(services: ServicesDep, filters: FilterDep, page: PageDep) -> Logs:
    rows, total = await services.usage.read(lambda con: read_log(con, filters, page))
    return Logs.model_construct(
        logs=[show_log_row(row) for row in rows],
        total=total,
        limit=page.limit,
        offset=page.offset,
        next=_next(rows, page),
    )


@router.get("/request-logs", summary="Settled requests in full, newest first")
async def request_logs(
    services: ServicesDep, caller: CallerDep, filters: FilterDep, page: PageDep
) -> RequestLogs:
    rows, total = await services.usage.read(lambda con: read_log(con, filters, page))
    names = [BodyName(row["ts_ms"], row["request_id"], row["key_id"]) for row in rows]
    is_confined = _is_confined(caller)
    bodies_found = await body_keeper_of(services).has(names)
    return RequestLogs.model_construct(
        logs=[
            show_request_log_row(row, has_bodies=has_bodies, is_confined=is_confined)
            for row, has_bodies in zip(rows, bodies_found, strict=True)
        ],
        total=total,
        limit=page.limit,
        offset=page.offset,
        next=_next(rows, page),
    )


def _next(rows: list[dict[str, Any]], page: Page) -> str | None:
    """The cursor of the page that follows; None where this one was not full, or is not in the order of time."""
    if len(rows) < page.limit or page.order != "time":
        return None
    return f"{rows[-1]['ts_ms']}-{rows[-1]['request_id']}"


def _parse_cursor(cursor: str) -> PageCursor:
    ts_ms, dash, request_id = cursor.partition("-")
    if not (dash and request_id and ts_ms.isdecimal() and ts_ms.isascii() and len(ts_ms) < 17):
        raise InvalidRequest("after must be the `next` of a page.", param="after")
    return PageCursor(int(ts_ms), request_id)


def _dimensions(text: str) -> list[Dimension]:
    known: dict[str, Dimension] = {name: name for name in get_args(Dimension)}
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["total"]:
        return []
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise InvalidRequest(f"groupBy must name some of {', '.join(known)}.", param="groupBy")
    if len(BUCKETS.intersection(names)) > 1:
        raise InvalidRequest(
            "groupBy must name one of minute, hour, day and month at most.", param="groupBy"
        )
    return [known[name] for name in dict.fromkeys(names)]


def _moment_ms(text: str, param: str) -> int:
    try:
        if text.isdecimal() and text.isascii():
            ms = int(text)
        else:
            moment = datetime.fromisoformat(text)
            ms = ms_of(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        ms = -1
    if not 0 <= ms <= LATEST_MS:
        raise InvalidRequest(
            f"{param} must be an ISO 8601 time, such as 2027-01-31T12:00:00Z, or UTC milliseconds.",
            param=param,
        )
    return ms
