"""`GET /v1/me/status`: what the calling key may do, what it has used, and what is left of its limits."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any, Final

from fastapi import APIRouter

from fairlead.calls.caller import MANAGING_SCOPES, CallerDep
from fairlead.errors import Forbidden
from fairlead.moment import iso, moment_of, now_ms
from fairlead.money import usd_of
from fairlead.records.budgets import COLUMNS, KINDS, window_of
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep
from fairlead.usage.sums.facts import Filters, Selection, sums_of
from fairlead.usage.sums.span import Span
from fairlead.usage.token_limits.table import TokenLimit, list_limits
from fairlead.usage.token_limits.use import use_of_limits

router = APIRouter(prefix="/v1/me", tags=["usage"])

SCOPE: Final = "self:usage"
_FIELDS: Final = (
    "name",
    "scopes",
    "allow_usage_command",
    "is_active",
    "expires_at_ms",
    "created_at_ms",
    "model_access_mode",
    "allowed_models",
    "blocked_models",
    "allowed_combos",
    "allow_auto_combos",
    "allowed_endpoints",
    "max_sessions",
    "rate_limits",
    "usage_limit_enabled",
    "usage_limit_tz",
    *COLUMNS,
)
_SELECT: Final = f"SELECT {', '.join(_FIELDS)} FROM keys WHERE id = ?"


@router.get("/status", summary="Access and usage of the calling key")
async def status(services: ServicesDep, caller: CallerDep) -> dict[str, Any]:
    """For a key with the scope `self:usage`, with `allowUsageCommand`, or one that manages; another is
    answered 403. Sums are of settled requests; the newest may take a second to show.
    """
    key_id = caller.principal.id or ""

    def read_rows(con: Connection) -> tuple[dict[str, Any], list[TokenLimit]]:
        row = con.execute(_SELECT, [key_id]).fetchone()
        return dict(zip(_FIELDS, row or (), strict=False)), list_limits(con, key_id)

    key, token_limits = await services.state.read(read_rows)
    scopes = set(key.get("scopes") or ())
    if not (key.get("allow_usage_command") or scopes & {SCOPE, *MANAGING_SCOPES}):
        raise Forbidden(
            f"This key may not ask for its status: give it the scope `{SCOPE}`, or set allowUsageCommand on it.",
            param="scopes",
        )
    at_ms = now_ms()
    usage, tokens = await asyncio.gather(
        _usage(services, key_id, key, at_ms), _token_limits(services, token_limits, at_ms)
    )
    limits = json.loads(key["rate_limits"]) if key["rate_limits"] else []
    return {
        "object": "key.status",
        "id": key_id,
        "name": key["name"],
        "scopes": sorted(scopes),
        "created_at": _time(key["created_at_ms"]),
        "expires_at": _time(key["expires_at_ms"]),
        "access": {
            "models": key["model_access_mode"],
            "allowed_models": key["allowed_models"],
            "blocked_models": key["blocked_models"],
            "allowed_combos": key["allowed_combos"],
            "allow_auto_combos": key["allow_auto_combos"],
            "allowed_endpoints": key["allowed_endpoints"],
        },
        "usage": usage,
        "rate_limits": [
            {"limit": rule["limit"], "window_seconds": rule["window"]} for rule in limits
        ],
        "token_limits": tokens,
        "max_sessions": key["max_sessions"] or None,
    }


async def _usage(
    services: Services, key_id: str, key: dict[str, Any], at_ms: int
) -> dict[str, Any]:
    """The sums of the day, week and month of the key's zone, each with its limit in USD."""
    filters = Filters(["key_id = $key_id"], {"key_id": key_id})
    usage: dict[str, Any] = {}
    for kind in KINDS:
        starts_ms, ends_ms = window_of(kind, key["usage_limit_tz"], at_ms)
        span = Span(starts_ms, ends_ms)
        sums = await services.usage.read(
            partial(sums_of, span=span, selection=Selection({}, filters))
        )
        row = sums.row(0, named=True) if sums.height else {}
        spent = int(row.get("cost_usd_micros", 0))
        limit = key[kind.column] if key["usage_limit_enabled"] else None
        usage[kind.word] = {
            "requests": int(row.get("requests", 0)),
            "errors": int(row.get("errors", 0)),
            "input_tokens": int(row.get("tokens_input", 0)),
            "output_tokens": int(row.get("tokens_output", 0)),
            "spent_usd": usd_of(spent),
            "unpriced_requests": int(row.get("unpriced_requests", 0)),
            "limit_usd": None if limit is None else usd_of(limit),
            "remaining_usd": None if limit is None else usd_of(max(0, limit - spent)),
            "starts_at": _time(starts_ms),
            "resets_at": _time(ends_ms),
        }
    return usage


async def _token_limits(
    services: Services, limits: list[TokenLimit], at_ms: int
) -> list[dict[str, Any]]:
    uses = await use_of_limits(services, [limit for limit in limits if limit.enabled], at_ms)
    return [
        {
            "scope_type": use.limit.scope_type,
            "scope_value": use.limit.scope_value,
            "limit": use.limit.token_limit,
            "used": use.used,
            "remaining": use.remaining,
            "resets_at": _time(use.ends_ms),
        }
        for use in uses
    ]


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else iso(moment_of(at_ms))
