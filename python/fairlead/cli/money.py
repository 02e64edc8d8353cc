"""Money for people: US dollars from whole micro-dollars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.money import USD_MICROS, without_price


def exact_dollars(usd: str) -> str:
    """A cost as the header states it, without the zeros behind it: `$0.00000855`."""
    whole, _, digits = usd.partition(".")
    return f"${whole}.{digits.rstrip('0'):0<2}"


def cost_of(record: Mapping[str, Any]) -> str:
    """The cost of a request of the log: `no price` where it is not known."""
    known = record["costUsdMicros"]
    if not record["isUnpriced"]:
        return dollars(known)
    return f"{dollars(known)} + no price" if known else "no price"


def total_of(micros: int, unpriced: int) -> str:
    """A sum of costs, and how many requests have no price and are not in it. A sum that is all unknown is not $0."""
    left_out = without_price(unpriced)
    return dollars(micros) + left_out if micros or not unpriced else left_out.removeprefix(" + ")


def total(row: Mapping[str, Any]) -> str:
    """Like `total_of`, for a group of requests of the API."""
    return total_of(row["costUsdMicros"], row["unpricedRequests"])


def dollars(micros: int) -> str:
    """`$12.35`; below a dollar with as many digits as it takes, up to the last micro-dollar: `$0.000042`."""
    sign = "-" if micros < 0 else ""
    whole, rest = divmod(abs(micros), USD_MICROS)
    if whole:
        cents = (abs(micros) + 5_000) // 10_000
        return f"{sign}${cents // 100:,}.{cents % 100:02d}"
    digits = f"{rest:06d}".rstrip("0")
    return f"{sign}$0.{digits:0<2}"
