"""The calls that a key is allowed, in words, and the remainder of each of its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.dashboard.api import Api
from fairlead.dashboard.budgets import read_budgets
from fairlead.dashboard.figures import count, exact, money, parse_time

Record = Mapping[str, Any]
_NAMED_MAX = 12


@dataclass(frozen=True, slots=True)
class RemainingLimit:
    """A limit of a key: its name, what of it is used and left, in words, and the used part from 0 to 1."""

    name: str
    words: str
    part: float
    anew: str | None


async def read_left(api: Api, key: dict[str, Any]) -> list[RemainingLimit]:
    """Every limit of money, tokens and requests that is in force for the key."""
    budgets, tokens, rates, above = await asyncio.gather(
        read_budgets(api, [key]),
        api.get("/api/usage/token-limits", apiKeyId=key["id"]),
        api.get("/api/rate-limits", keyId=key["id"]),
        _read_levels(api, key["groupId"]),
    )
    found = [
        RemainingLimit(
            f"Money, {each.words}",
            f"{each.spent_words} of {money(each.limit)}, {money(max(each.limit - each.spent, 0))} left",
            each.part,
            None,
        )
        for each in budgets
    ]
    found += [
        RemainingLimit(
            f"Tokens, {each['resetInterval']}"
            + (f", {each['scopeValue']}" if each["scopeValue"] else ""),
            f"{count(each['tokensUsed'])} of {count(each['tokenLimit'])}, {count(each['remaining'])} left",
            each["tokensUsed"] / each["tokenLimit"],
            each["nextResetAt"],
        )
        for each in tokens["limits"]
        if each["enabled"]
    ]
    none: list[dict[str, Any]] = []
    rules = next((each["rules"] for each in rates["keys"]), none)
    found += [
        RemainingLimit(
            f"Requests in {exact(rule['window'])} s",
            f"{exact(rule['used'])} of {exact(rule['limit'])}, "
            f"{exact(max(rule['limit'] - rule['used'], 0))} left",
            rule["used"] / rule["limit"],
            rule["resetsAt"],
        )
        for rule in rules
    ]
    found += [
        RemainingLimit(
            f"{limit_name(one)}, group {level['name']}",
            f"{_amount(one, 'used')} of {_amount(one, 'limit')}, {_amount(one, 'left')} left",
            one["used"] / one["limit"] if one["limit"] else 1.0,
            one["resetsAt"],
        )
        for level in above
        for one in level["limits"]
    ]
    return found


async def _read_levels(api: Api, group_id: str | None) -> list[dict[str, Any]]:
    """The levels of the key's group, with the limits that hold for all of its keys together."""
    if group_id is None:
        return []
    levels: list[dict[str, Any]] = (await api.get(f"/api/groups/{group_id}/spending"))["levels"]
    return levels


def limit_name(limit: Record) -> str:
    """The thing that a limit of a group bounds, and the time for which it does."""
    length = parse_time(limit["resetsAt"]) - parse_time(limit["startsAt"])
    unit = "Money" if limit["unit"] == "usd" else str(limit["unit"]).capitalize()
    hours = round(length.total_seconds() / 3600)
    if hours < 1:
        return f"{unit} in {length.total_seconds():,.0f} s"
    # A day of a zone has 23 to 25 hours when its clocks are changed.
    if hours < 23:
        return f"{unit} in {hours} h"
    return f"{unit} in a {'day' if hours <= 25 else 'week' if hours <= 169 else 'month'}"


def _amount(limit: Record, name: str) -> str:
    value = limit[name]
    return money(value * 1_000_000) if limit["unit"] == "usd" else exact(int(value))


def access_of(
    key: Record, connections: Mapping[str, str], endpoints: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Names and words for what is open to the key. `connections` are names by id, `endpoints` words by name."""
    return [
        ("State", _state(key)),
        ("Models", _models(key)),
        ("Combos", _combos(key)),
        ("Connections", _connections(key, connections)),
        (
            "Kinds of call",
            _named([endpoints.get(each, each) for each in key["allowedEndpoints"]], "all"),
        ),
        ("Management", _management(key)),
        ("When", _when(key)),
        ("From", _named(key["ipAllowlist"], "any address")),
    ]


def _state(key: Record) -> str:
    if key["isBanned"]:
        return "nothing: it is banned"
    if not key["isActive"]:
        return "nothing: it is not active"
    return "in force" + (f" until {key['expiresAt'][:16]} UTC" if key["expiresAt"] else "")


def _models(key: Record) -> str:
    if key["forcedModel"]:
        return f"always {key['forcedModel']}, whatever the request names"
    is_restricted = key["modelAccessMode"] == "restricted"
    words = f"only {_named(key['allowedModels'], 'none')}" if is_restricted else "all"
    if key["blockedModels"]:
        words += f", never {_named(key['blockedModels'], '')}"
    return words


def _combos(key: Record) -> str:
    if key["allowedCombos"]:
        return f"only {_named(key['allowedCombos'], '')}"
    return "all" if key["allowAutoCombos"] else "all except automatic ones"


def _connections(key: Record, names: Mapping[str, str]) -> str:
    if key["connectionAccessMode"] != "restricted":
        return "all"
    allowed = [names.get(each, "a deleted one") for each in key["allowedConnections"]]
    return f"only {_named(allowed, 'none')}"


def _management(key: Record) -> str:
    return _named(key["scopes"], "nothing of it")


def _when(key: Record) -> str:
    schedule = key["accessSchedule"]
    if not schedule or not schedule["enabled"]:
        return "at any time"
    return f"{schedule['from']} to {schedule['until']}, {schedule['tz']}, on certain days"


def _named(names: list[str], otherwise: str) -> str:
    if not names:
        return otherwise
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
