"""`/api/usage/om-usage`: the remaining quota of the calling key and its providers, as text for
people and as JSON for programs.

The text shows the *usable* part: routing reserves a share of each window, so it stops at `0% left`.
The JSON shows the providers' own figures, with the reserved shares beside them. Both show what a provider's own usage
route told, where it was asked.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import APIRouter, Query, Response
from starlette.responses import JSONResponse, PlainTextResponse

from fairlead.calls.caller import CallerDep
from fairlead.moment import iso, moment_of, ms_of, now_ms
from fairlead.money import usd_of, without_price
from fairlead.records.budgets import COLUMNS, KINDS, window_of
from fairlead.records.provider_names import prefixes
from fairlead.records.provider_usage import MICROS, ProviderUsage, UsageFigure, all_provider_usage
from fairlead.records.provider_usage_view import show_provider_usage
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep
from fairlead.usage.sums.facts import Filters, Selection, sums_of
from fairlead.usage.sums.span import Span
from fairlead.usage.telemetry.reports import ConnectionReport, Window, merge_reports

router = APIRouter(prefix="/api/usage", tags=["usage"])

# The reserved share of each window, where the snapshot sets no other.
CUTOFF_PERCENT: Final = 2.0

_KEY = (
    "allow_usage_command, usage_limit_enabled, connection_access_mode, allowed_connections, "
    f"usage_limit_tz, {', '.join(COLUMNS)}"
)


@router.get("/om-usage", summary="Remaining limits of the calling key and its providers")
async def om_usage(
    services: ServicesDep,
    caller: CallerDep,
    format_: Annotated[
        Literal["text", "json"] | None, Query(alias="format", description="`text` if left out.")
    ] = None,
) -> Response:
    """For a key with `allowUsageCommand`; another is answered 403."""
    key_id = caller.principal.id or ""

    def read_rows(
        con: Connection,
    ) -> tuple[Any, list[Any], dict[str, ProviderUsage], dict[str, str]]:
        key = con.execute(f"SELECT {_KEY} FROM keys WHERE id = ?", [key_id]).fetchone()
        connections = con.execute(
            "SELECT id, name, provider, quota_window_thresholds FROM provider_connections WHERE is_active "
            "ORDER BY priority, created_at_ms, id"
        ).fetchall()
        return key, connections, all_provider_usage(con), prefixes(con)

    key, connections, own, names = await services.state.read(read_rows)
    if key is None or not key[0]:
        message = "This key may not ask for its usage: set allowUsageCommand on it."
        return _json({"allowed": False, "error": {"message": message}}, 403)
    _, has_limits, access_mode, allowed, tz, *limits = key
    at_ms = now_ms()
    personal = None
    if has_limits and any(limit is not None for limit in limits):
        personal = await _personal(services, key_id, tz, limits, at_ms)
    reports = merge_reports(services.workers())
    cutoff = await asyncio.to_thread(_cutoff_percent, services.data_dir / "snapshot.json")
    providers = [
        _provider(row, reports.get(row[0], ConnectionReport()), cutoff, own.get(row[0]))
        for row in connections
        if access_mode != "restricted" or row[0] in allowed
    ]
    if format_ == "json":
        body: dict[str, Any] = {"allowed": True}
        if personal is not None:
            body["personal"] = personal
        # Connections with known quotas come first.
        known = [one for one in providers if one["quotas"] or one["providerUsage"]]
        body["provider"] = known[0] if known else None
        body["providers"] = providers
        return _json(body, 200)
    figures = {each: usage.figures for each, usage in own.items()}
    return PlainTextResponse(
        _text(personal, [_named(one, names) for one in providers], figures, at_ms),
        headers={"cache-control": "no-store"},
    )


def _named(provider: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The provider under the name that callers write before its models."""
    return {**provider, "provider": names.get(provider["provider"], provider["provider"])}


async def _personal(
    services: Services, key_id: str, tz: str, limits: list[int | None], at_ms: int
) -> dict[str, Any]:
    spending: dict[str, Any] = {}
    for kind, limit in zip(KINDS, limits, strict=True):
        starts_ms, ends_ms = window_of(kind, tz, at_ms)
        name = kind.word
        filters = Filters(["key_id = $key_id"], {"key_id": key_id})
        span = Span(starts_ms, ends_ms)
        sums = await services.usage.read(
            partial(
                sums_of,
                span=span,
                selection=Selection({}, filters),
                wanted=("cost_usd_micros", "unpriced_requests"),
            )
        )
        spending[f"{name}SpentUsd"] = usd_of(int(sums["cost_usd_micros"].sum()))
        spending[f"{name}UnpricedRequests"] = int(sums["unpriced_requests"].sum())
        spending[f"{name}LimitUsd"] = None if limit is None else usd_of(limit)
        spending[f"{name}ResetAtIso"] = iso(moment_of(ends_ms))
    return spending


def _provider(
    row: Any, report: ConnectionReport, cutoff_percent: float, own: ProviderUsage | None
) -> dict[str, Any]:
    connection_id, name, provider, thresholds = row
    reserved: dict[str, float] = orjson.loads(thresholds) if thresholds else {}
    return {
        "connectionId": connection_id,
        "name": name,
        "provider": provider,
        "quotas": {window.name: _quota(window) for window in report.windows.values()},
        "quotaWindowThresholds": {
            window: reserved.get(window, cutoff_percent) for window in report.windows
        },
        "providerUsage": _figures(own),
    }


def _figures(own: ProviderUsage | None) -> list[dict[str, Any]]:
    """The figures of the provider's usage route, if there are any. The reason for missing figures is shown only to
    the operator.
    """
    if own is None:
        return []
    view = show_provider_usage(own)
    return [figure.model_dump(mode="json", by_alias=True) for figure in view.figures]


def _figure_text(figure: UsageFigure) -> str:
    """The parts of a figure that are shown."""
    parts = [
        f"{micros / MICROS:.2f} {figure.unit} {word}"
        for micros, word in (
            (figure.used_micros, "used"),
            (figure.remaining_micros, "left"),
            (figure.limit_micros, "in all"),
        )
        if micros is not None
    ]
    return f"{figure.name}: {', '.join(parts) or 'unknown'}"


def _quota(window: Window) -> dict[str, Any]:
    remaining = round(min(max(window.remaining, 0.0), 1.0) * 100, 2)
    resets_at = None if window.resets_at_ms is None else iso(moment_of(window.resets_at_ms))
    # Headers give shares of windows; most providers do not give the size, so no total is shown.
    return {
        "remainingPercentage": remaining,
        "resetAt": resets_at,
        "closesConnection": window.is_quota,
    }


def _text(
    personal: dict[str, Any] | None,
    providers: list[dict[str, Any]],
    figures: dict[str, tuple[UsageFigure, ...]],
    at_ms: int,
) -> str:
    lines = []
    for name in (kind.word for kind in KINDS) if personal else ():
        limit = personal[f"{name}LimitUsd"] if personal else None
        if personal and limit is not None:
            spent = personal[f"{name}SpentUsd"]
            resets = _until(personal[f"{name}ResetAtIso"], at_ms)
            unpriced = without_price(personal[f"{name}UnpricedRequests"])
            lines.append(f"{name}: ${spent:.2f} of ${limit:.2f} spent{unpriced}, reset {resets}")
    for one in providers:
        for window, quota in one["quotas"].items():
            cutoff = one["quotaWindowThresholds"][window]
            left = usable_percent(quota["remainingPercentage"], cutoff)
            resets = _until(quota["resetAt"], at_ms)
            lines.append(
                f"{one['provider']} ({one['name']}) {window}: {left}% left, reset {resets}"
            )
        name = f"{one['provider']} ({one['name']})"
        lines.extend(
            f"{name} {_figure_text(each)}" for each in figures.get(one["connectionId"], ())
        )
    if not any(one["quotas"] or one["providerUsage"] for one in providers):
        lines.append("Unavailable")
    return "\n".join(lines) + "\n"


def usable_percent(remaining: float, cutoff: float) -> int:
    """The remaining part above the reserved share, in percent of the whole above it: 0 exactly
    where routing stops, and only there.
    """
    if remaining <= cutoff:
        return 0
    return max(1, round((remaining - cutoff) * 100 / (100 - cutoff)))


def _until(resets_at: str | None, at_ms: int) -> str:
    """The time until then: `in 2h 5m`, `in 3d 4h`, `in 12m`, `now` or `unknown`."""
    if resets_at is None:
        return "unknown"
    minutes = -((at_ms - ms_of(datetime.fromisoformat(resets_at))) // 60_000)
    if minutes <= 0:
        return "now"
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"in {days}d {hours}h"
    return f"in {hours}h {rest}m" if hours else f"in {rest}m"


def _cutoff_percent(snapshot: Path) -> float:
    """The reserved share in force, from the relay's snapshot."""
    try:
        quota = orjson.loads(snapshot.read_bytes()).get("resilience", {}).get("quota", {})
        return float(quota.get("threshold_percent", CUTOFF_PERCENT))
    except (OSError, ValueError, AttributeError, TypeError):
        # There is no snapshot yet: the default is in force.
        return CUTOFF_PERCENT


def _json(body: dict[str, Any], status: int) -> JSONResponse:
    return JSONResponse(body, status, headers={"cache-control": "no-store"})
