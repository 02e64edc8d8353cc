"""Current activity: sessions, and the limits of connections and keys."""

from __future__ import annotations

import json
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Query
from pydantic import Field

from fairlead.calls.caller import CallerDep, confined_to
from fairlead.moment import Time, moment_of, now_ms
from fairlead.money import usd_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.usage.figures.sessions import count_sessions, read_sessions
from fairlead.usage.routes.views import UNPRICED, View
from fairlead.usage.sums.facts import EVERYTHING, Filters, Selection, sums_of
from fairlead.usage.sums.ranges import span_of
from fairlead.usage.sums.recent import read_recent_by_connection
from fairlead.usage.sums.span import Span
from fairlead.usage.telemetry.reports import ConnectionReport, RateName, merge_reports

router = APIRouter(prefix="/api", tags=["usage"])

MINUTE_MS = 60_000
OneConnection = Annotated[
    str | None,
    Query(
        alias="connectionId",
        max_length=300,
        description="This connection alone, and no keys but `keyId`.",
    ),
]
OneKey = Annotated[
    str | None,
    Query(
        alias="keyId",
        max_length=300,
        description="This key alone, and no connections but `connectionId`.",
    ),
]
_LIMITS = (
    "max_concurrent, requests_per_minute, tokens_per_minute, min_gap_ms, queue_depth, "
    "queue_timeout_ms"
)


class SessionView(View):
    """A session: requests of one key with one session tag or sticky session id."""

    session_id: str
    key_id: str | None
    is_sticky: bool = Field(description="Whether it holds to one connection (`X-Session-Id`).")
    first_seen: Time
    last_seen: Time
    requests: int
    errors: int
    tokens_input: int
    tokens_output: int
    cost_usd_micros: int
    cost_usd: float
    unpriced_requests: int = Field(description=UNPRICED)
    model: str | None
    provider: str | None
    connection_id: str | None


class Sessions(View):
    count: int
    sessions: list[SessionView]
    by_api_key: dict[str, int]


@router.get("/sessions", summary="Sessions of the last minutes")
async def sessions(
    services: ServicesDep, minutes: Annotated[int, Query(ge=1, le=1440)] = 30
) -> Sessions:
    """Sessions with a settled request in the last minutes, the latest first, at most 1,000; keys
    that ask for no log are left out. `byApiKey` counts them all, callers without a key as
    `anonymous`.
    """
    from_ms = now_ms() - minutes * MINUTE_MS
    rows, counts = await services.usage.read(
        lambda con: (read_sessions(con, from_ms), count_sessions(con, from_ms))
    )
    return Sessions.model_construct(
        count=sum(counts.values()),
        sessions=[_session(row) for row in rows],
        by_api_key={key_id or "anonymous": count for key_id, count in counts.items()},
    )


def _session(row: dict[str, Any]) -> SessionView:
    return SessionView.model_construct(
        **{name: row[name] for name in SessionView.model_fields if name in row},
        first_seen=moment_of(row["first_seen_ms"]),
        last_seen=moment_of(row["last_seen_ms"]),
        cost_usd=usd_of(row["cost_usd_micros"]),
    )


class WindowView(View):
    """One limit of a provider's, as its answers tell it."""

    name: str
    remaining_percent: float
    resets_at: Time | None
    is_quota: bool = Field(description="Unlike a rate, it closes the connection when used up.")


class SetLimits(View):
    """The limits that the operator set for a connection; null is none."""

    max_concurrent: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    min_gap_ms: int | None
    queue_depth: int | None
    queue_timeout_ms: int | None


class Remaining(View):
    """The part of those limits that is left now; null where one is not set."""

    slots: int | None = Field(description="Requests that may start in addition to those in flight.")
    requests: int | None = Field(description="In this minute.")
    tokens: int | None = Field(description="In this minute.")


class LearnedLimit(View):
    """A rate of one model that the provider reported in its headers, and that is enforced until then."""

    model: str = Field(description="As the provider knows it.")
    name: RateName
    limit: int
    remaining: int = Field(description="By now: it grows evenly until it is full.")
    per_minute: int | None = Field(description="The refill in a minute.")
    full_at: Time = Field(description="When it is full again, and no longer enforced.")


class ConnectionLimits(View):
    """A connection: its limits, its remaining quota, and its requests of the last minute and hour."""

    connection_id: str
    name: str
    provider: str
    is_active: bool
    state: str
    cooling_ms: int
    last_error: str | None
    in_flight: int
    queued: int = Field(description="Requests that wait for its limits.")
    limits: SetLimits | None = Field(
        description="Null: none is set, or the connection is switched off."
    )
    remaining: Remaining | None = Field(
        description="Null: none is set, or no relay worker has reported it yet."
    )
    learned_limits: list[LearnedLimit]
    requests_last_minute: int
    tokens_last_minute: int
    requests_last_hour: int
    windows: list[WindowView] = Field(description="As the provider told them in its answers.")


class KeyRule(View):
    """At most `limit` requests in each `window` seconds."""

    limit: int
    window: int
    used: int = Field(description="Settled requests in the current window.")
    resets_at: Time


class KeyLimits(View):
    key_id: str
    name: str
    rules: list[KeyRule]


class Lockout(View):
    connection_id: str
    provider: str
    model: str | None = Field(description="Null: the whole connection rests.")
    until: Time


class Overview(View):
    connections: int
    active: int
    limited: int = Field(description="Connections that rest, or are out of quota.")
    keys_with_limits: int


class CacheStats(View):
    hits_last_hour: int
    misses_last_hour: int
    hit_rate: float | None


class RateLimits(View):
    connections: list[ConnectionLimits]
    keys: list[KeyLimits]
    overview: Overview
    lockouts: list[Lockout]
    cache_stats: CacheStats


@router.get("/rate-limits", summary="Limits of each connection and key")
async def rate_limits(
    services: ServicesDep,
    caller: CallerDep,
    *,
    connection_id: OneConnection = None,
    key_id: OneKey = None,
) -> RateLimits:
    """Limits that are set for connections and what is left of them, rate limits that providers report, recent
    requests per connection, and each key's use of its `rateLimits` windows. A key with the scope
    `self:account-quota` sees itself, and the connections that it may use. `overview` sums up these figures.
    """
    at_ms = now_ms()
    own = confined_to(caller.principal, "read:quota")
    mine = EVERYTHING if own is None else Filters(["key_id = $key_id"], {"key_id": own})
    reports = merge_reports(services.workers())

    connections, keys = await services.state.read(lambda con: _limited_rows(con, own))
    if connection_id is not None or key_id is not None:
        connections = [row for row in connections if row[0] == connection_id]
        keys = [row for row in keys if row[0] == key_id]
    rules = [(key_id, name, json.loads(limits)) for key_id, name, limits in keys]

    def read(con: Connection) -> tuple[Any, Any, Any, list[KeyLimits]]:
        span, by = span_of("1h"), {"connection_id": "connection_id"}
        wanted = ("requests", "cache_hits", "cache_misses")
        minute = read_recent_by_connection(con, at_ms - MINUTE_MS)
        hour = sums_of(con, span, Selection(by, coarsest="minute"), wanted)
        whole = hour
        if own:
            whole = sums_of(con, span, Selection({}, mine, "minute"), wanted)
        return minute, hour, whole, [_key_limits(con, *rule, at_ms) for rule in rules]

    minute, hour, whole, key_limits = await services.usage.read(read)
    of_hour = dict(hour.select("connection_id", "requests").iter_rows())
    views = [
        _connection_limits(
            row,
            reports.get(row[0], ConnectionReport()),
            minute.get(row[0], (0, 0)),
            of_hour.get(row[0], 0),
        )
        for row in connections
    ]
    limited = sum(view.state != "active" for view in views)
    return RateLimits.model_construct(
        connections=views,
        keys=key_limits,
        overview=Overview.model_construct(
            connections=len(views),
            active=sum(view.is_active for view in views),
            limited=limited,
            keys_with_limits=len(key_limits),
        ),
        lockouts=[
            lockout
            for row in connections
            for lockout in _lockouts(row[0], row[2], reports.get(row[0], ConnectionReport()), at_ms)
        ],
        cache_stats=_cache_stats(whole),
    )


def _cache_stats(hour: pl.DataFrame) -> CacheStats:
    hits, misses = int(hour["cache_hits"].sum()), int(hour["cache_misses"].sum())
    return CacheStats.model_construct(
        hits_last_hour=hits,
        misses_last_hour=misses,
        hit_rate=hits / (hits + misses) if hits + misses else None,
    )


def _limited_rows(con: Connection, own: str | None) -> tuple[list[Any], list[Any]]:
    """Connections and keys with rate limits; of a key that is confined to its own rows, itself and the
    connections that it may use.
    """
    connections = con.execute(
        f"SELECT id, name, provider, is_active, {_LIMITS} FROM provider_connections "
        "ORDER BY provider, priority, id"
    ).fetchall()
    keys = con.execute(
        "SELECT id, name, rate_limits FROM keys WHERE rate_limits IS NOT NULL ORDER BY name, id"
    ).fetchall()
    if own is None:
        return connections, keys
    usable = _usable_connections(con, own)
    return (
        [row for row in connections if usable is None or row[0] in usable],
        [row for row in keys if row[0] == own],
    )


def _usable_connections(con: Connection, key_id: str) -> set[str] | None:
    """The connections that a key may use; None: all."""
    row = con.execute(
        "SELECT connection_access_mode, allowed_connections FROM keys WHERE id = ?", [key_id]
    ).fetchone()
    if row is None:
        return set()
    return set(row[1] or ()) if row[0] == "restricted" else None


def _connection_limits(
    row: Any, report: ConnectionReport, minute: tuple[int, int], of_hour: int
) -> ConnectionLimits:
    connection_id, name, provider, is_active, *limits = row
    requests, tokens = minute
    return ConnectionLimits.model_construct(
        connection_id=connection_id,
        name=name,
        provider=provider,
        is_active=is_active,
        state=report.state if is_active else "deactivated",
        cooling_ms=report.cooling_ms,
        last_error=report.last_error,
        in_flight=report.in_flight,
        queued=report.queued,
        limits=_set_limits(limits) if is_active else None,
        remaining=_remaining(report, limits),
        learned_limits=[
            LearnedLimit.model_construct(
                model=rate.model,
                name=rate.name,
                limit=rate.limit,
                remaining=rate.remaining,
                per_minute=rate.per_minute,
                full_at=moment_of(now_ms() + rate.full_in_ms),
            )
            for rate in report.learned.values()
        ],
        requests_last_minute=requests,
        tokens_last_minute=tokens,
        requests_last_hour=of_hour,
        windows=[
            WindowView.model_construct(
                name=window.name,
                remaining_percent=round(window.remaining * 100, 2),
                resets_at=None if window.resets_at_ms is None else moment_of(window.resets_at_ms),
                is_quota=window.is_quota,
            )
            for window in report.windows.values()
        ],
    )


def _remaining(report: ConnectionReport, limits: list[Any]) -> Remaining | None:
    if report.remaining is None or all(value is None for value in limits):
        return None
    return Remaining.model_construct(**report.remaining)


def _set_limits(values: list[Any]) -> SetLimits | None:
    if all(value is None for value in values):
        return None
    return SetLimits.model_construct(**dict(zip(SetLimits.model_fields, values, strict=True)))


def _key_limits(
    con: Connection, key_id: str, name: str, rules: list[dict[str, int]], at_ms: int
) -> KeyLimits:
    views = []
    for rule in rules:
        window_ms = rule["window"] * 1000
        starts_ms = at_ms - at_ms % window_ms
        filters = Filters(["key_id = $key_id"], {"key_id": key_id})
        span = Span(starts_ms, at_ms + 1, is_open=True)
        used = sums_of(con, span, Selection({}, filters), ("let_through",))
        views.append(
            KeyRule.model_construct(
                limit=rule["limit"],
                window=rule["window"],
                used=int(used["let_through"].sum()),
                resets_at=moment_of(starts_ms + window_ms),
            )
        )
    return KeyLimits.model_construct(key_id=key_id, name=name, rules=views)


def _lockouts(
    connection_id: str, provider: str, report: ConnectionReport, at_ms: int
) -> list[Lockout]:
    until: dict[str | None, int] = dict(report.lockouts.items())
    if report.cooling_ms:
        until[None] = at_ms + report.cooling_ms
    return [
        Lockout.model_construct(
            connection_id=connection_id, provider=provider, model=model, until=moment_of(until_ms)
        )
        for model, until_ms in until.items()
    ]
