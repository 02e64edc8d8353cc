"""Limits of a key as options of a command, and as the fields of the API that they set."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from fairlead.cli.amount import parse_amount, whole

_MONEY: Final = {
    "day": "dailyUsageLimitUsd",
    "daily": "dailyUsageLimitUsd",
    "week": "weeklyUsageLimitUsd",
    "weekly": "weeklyUsageLimitUsd",
    "month": "monthlyUsageLimitUsd",
    "monthly": "monthlyUsageLimitUsd",
}
_SECONDS: Final = {"second": "1", "minute": "60", "hour": "3600", "day": "86400"}
_INTERVALS: Final = {
    "day": "daily",
    "daily": "daily",
    "week": "weekly",
    "weekly": "weekly",
    "month": "monthly",
    "monthly": "monthly",
}

Models = Annotated[
    list[str] | None,
    typer.Option(
        "--models",
        "--model",
        metavar="MODEL",
        help="Allow only this model; `*` at the end matches any rest, as in 'openai/*'. Repeatable.",
    ),
]
Budget = Annotated[
    list[str] | None,
    typer.Option(
        metavar="USD/PERIOD",
        help="The most that the key may spend in a day, week or month, such as 20/month. Repeatable.",
    ),
]
Rpm = Annotated[int | None, typer.Option(min=1, help="The most requests in a minute.")]
Rate = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N/PERIOD",
        help="The most requests in a second, minute, hour or day, such as 5000/day. Repeatable.",
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option(help="The time zone whose days, weeks and months budgets use. Default: UTC."),
]


def limit_fields(
    models: list[str] | None,
    budget: list[str] | None,
    rpm: int | None,
    rate: list[str] | None,
    timezone: str | None,
) -> dict[str, Any]:
    """The fields that these options set; none for an option that is not given. Raises `CommandFailed`."""
    fields: dict[str, Any] = {}
    if models:
        fields |= {"modelAccessMode": "restricted", "allowedModels": models}
    for text in budget or []:
        amount = parse_amount("--budget", text, _MONEY)
        fields |= {amount.period: float(amount.number), "usageLimitEnabled": True}
    rules = [{"limit": rpm, "window": 60}] if rpm is not None else []
    for text in rate or []:
        amount = parse_amount("--rate", text, _SECONDS)
        rules.append({"limit": whole("--rate", amount), "window": int(amount.period)})
    if rules:
        fields["rateLimits"] = rules
    if timezone is not None:
        fields["usageLimitTz"] = timezone
    return fields


def with_limits_in_force(fields: dict[str, Any]) -> dict[str, Any]:
    """An amount in USD that is set takes effect, unless the fields themselves say otherwise."""
    sets_amount = any(fields.get(name) is not None for name in _MONEY.values())
    return {"usageLimitEnabled": True, **fields} if sets_amount else fields


def token_limit(option: str, text: str) -> dict[str, Any]:
    """The fields of a token limit, from `2M/month`. Raises `CommandFailed`."""
    amount = parse_amount(option, text, _INTERVALS)
    return {"tokenLimit": whole(option, amount), "resetInterval": amount.period}
