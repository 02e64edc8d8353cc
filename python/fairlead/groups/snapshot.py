"""The snapshot's part on groups: their access, guardrails, and limits as the relay counts them."""

from __future__ import annotations

from typing import Any

from fairlead.gateway.keys.snapshot import compile_limit, compile_rate_limits
from fairlead.groups.fields import NewGroup
from fairlead.groups.table import StoredGroup, list_groups
from fairlead.money import micros_of
from fairlead.records import budgets
from fairlead.store.file import Connection

_PERIODS = {kind.word: kind.period for kind in budgets.KINDS}
_PLAIN = (
    "name",
    "is_active",
    "model_access_mode",
    "allowed_models",
    "blocked_models",
    "allowed_combos",
    "connection_access_mode",
    "allowed_connections",
    "inexpressible",
)


def compile_groups(con: Connection) -> list[dict[str, Any]]:
    """Every group in the snapshot's form. Inactive groups are included, so that callers get the reason for a
    refusal.
    """
    return [_compiled(group) for group in list_groups(con)]


def _compiled(group: StoredGroup) -> dict[str, Any]:
    fields = group.fields
    return {
        "id": group.id,
        "parent": fields.parent_id,
        **{name: getattr(fields, name) for name in _PLAIN},
        "guardrails": fields.guardrails.model_dump(by_alias=False),
        "limits": compile_limits(fields),
    }


def compile_limits(fields: NewGroup) -> list[dict[str, Any]]:
    """The limits of a group in the snapshot's form."""
    zone = {"zone": fields.usage_limit_tz}
    rules = [{"limit": each.limit, "window": each.window} for each in fields.rate_limits or ()]
    money = {
        "day": fields.daily_usage_limit_usd,
        "week": fields.weekly_usage_limit_usd,
        "month": fields.monthly_usage_limit_usd,
    }
    limits = compile_rate_limits(rules)
    limits += [
        compile_limit(
            f"usd:{kind.period}", kind.field, "usd_micros", micros_of(amount), {kind.period: 0}
        )
        | zone
        for kind in budgets.KINDS
        if (amount := money[kind.period]) is not None
    ]
    limits += [
        compile_limit(
            f"tokens:{each.interval}",
            "tokenLimits",
            "tokens",
            each.limit,
            {_PERIODS[each.interval]: 0},
        )
        | zone
        for each in fields.token_limits or ()
    ]
    return limits
