"""Keys as the snapshot holds them: hashes, and the limits that the relay enforces."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.records import budgets
from fairlead.records.group_tree import GroupTree, read_tree
from fairlead.store.file import Connection

_FIELDS = (
    "id",
    "name",
    "hash",
    "is_active",
    "is_banned",
    "expires_at_ms",
    "model_access_mode",
    "allowed_models",
    "blocked_models",
    "allowed_endpoints",
    "catalog_scope",
    "no_log",
    "capture_bodies",
    "scopes",
    "allowed_combos",
    "allow_auto_combos",
    "connection_access_mode",
    "allowed_connections",
    "allowed_provider_objects",
    "forced_model",
    "disable_non_public_models",
    "throttle_delay_ms",
    "max_sessions",
    "stream_default_mode",
    "cache_default_mode",
    "compression_enabled",
    "auto_resolve",
    "disabled_guardrails",
    "ip_allowlist",
    "unpriced_models",
    "tool_service_mode",
    "inexpressible",
    "allow_usage_command",
)
# Fields whose form in the snapshot differs from the stored one.
_RULES = (
    "access_schedule",
    "rate_limits",
    "usage_limit_enabled",
    "usage_limit_tz",
    "group_id",
    "tags",
    "chaos_mode_enabled",
    "chaos_rate",
    "chaos_faults",
    "chaos_latency_ms",
    *budgets.COLUMNS,
)
_SELECT = f"SELECT {', '.join((*_FIELDS, *_RULES))} FROM keys ORDER BY created_at_ms, id"


def compile_keys(con: Connection) -> list[dict[str, Any]]:
    """Every key in the snapshot's form. Banned and inactive keys are included, so that their callers get the
    reason for a refusal.
    """
    rows = con.execute(_SELECT).fetchall()
    tree = read_tree(con)
    return [_compiled(row, tree) for row in rows]


def _compiled(row: tuple[Any, ...], tree: GroupTree) -> dict[str, Any]:
    key = dict(zip(_FIELDS, row, strict=False))
    schedule, rate_limits, counts_money, zone, group_id, tags, *rest = row[len(_FIELDS) :]
    is_chaotic, rate, faults, latency_ms, *amounts = rest
    if group_id is not None:
        key["group"] = group_id
    if all_tags := sorted({*tags, *tree.tags(group_id)}):
        key["tags"] = f",{','.join(all_tags)},"
    if is_chaotic:
        key["chaos"] = {"rate": rate, "faults": faults, "latency_ms": latency_ms}
    schedule = json.loads(schedule) if schedule else None
    key["access_schedule"] = schedule if schedule and schedule["enabled"] else None
    limits = compile_rate_limits(json.loads(rate_limits) if rate_limits else [])
    limits += [
        compile_limit(f"usd:{kind.period}", kind.field, "usd_micros", amount, {kind.period: 0})
        | {"zone": zone}
        for kind, amount in zip(budgets.KINDS, amounts, strict=True)
        if counts_money and amount is not None
    ]
    key["limits"] = limits
    return key


def compile_rate_limits(rules: Iterable[Mapping[str, int]]) -> list[dict[str, Any]]:
    """Limits of requests; of two with the same window only the lower matters."""
    rates: dict[int, int] = {}
    for rule in rules:
        rates[rule["window"]] = min(rule["limit"], rates.get(rule["window"], rule["limit"]))
    return [
        compile_limit(f"rate:{window_s}", "rateLimits", "requests", amount, {"seconds": window_s})
        for window_s, amount in rates.items()
    ]


def compile_limit(
    limit_id: str, name: str, unit: str, amount: int, period: Mapping[str, int]
) -> dict[str, Any]:
    """A limit in the snapshot's form."""
    return {"id": limit_id, "name": name, "unit": unit, "amount": amount, "period": period}
