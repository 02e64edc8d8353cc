"""Amounts for a time on the command line: `20/month`, `60/minute`, `2M/day`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from fairlead.cli.failure import CommandFailed

_FORM: Final = re.compile(r"\$?([0-9]{1,15}(?:\.[0-9]{1,6})?)([kKmM]?)/([a-z]+)")
_FACTORS: Final = {"": 1, "k": 1_000, "m": 1_000_000}


class Amount(NamedTuple):
    """A number for a period that the option knows."""

    number: Decimal
    period: str


def parse_amount(option: str, text: str, periods: Mapping[str, str]) -> Amount:
    """The amount; `periods` maps each spelling to the period. Raises `CommandFailed`."""
    found = _FORM.fullmatch(text)
    if found is None or found[3] not in periods:
        known = ", ".join(f"`{text}`" for text in dict.fromkeys(periods))
        raise CommandFailed(
            f"{option} must be a number, a slash and a period, such as 20/month, not `{text}`. "
            f"Periods are {known}."
        )
    return Amount(Decimal(found[1]) * _FACTORS[found[2].lower()], periods[found[3]])


def whole(option: str, amount: Amount) -> int:
    """The number, which must be a positive integer. Raises `CommandFailed`."""
    if amount.number != amount.number.to_integral_value() or amount.number < 1:
        raise CommandFailed(f"{option} must be a positive whole number, not {amount.number}.")
    return int(amount.number)
