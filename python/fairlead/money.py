"""Money: integer micro-dollars inside, US dollars as a number in the API."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

USD_MICROS: Final = 1_000_000


def micros_of(usd: float) -> int:
    """Converts dollars to micro-dollars by way of the shortest decimal form, so that 0.1 is exactly a tenth."""
    return round(Decimal(str(usd)) * USD_MICROS)


def without_price(requests: int) -> str:
    """The suffix of a cost total that leaves out requests: ` + 14 requests without a price`; empty for 0."""
    if not requests:
        return ""
    return f" + {requests:,} {'request' if requests == 1 else 'requests'} without a price"


def usd_of(micros: int) -> float:
    """Converts micro-dollars to dollars."""
    return micros / USD_MICROS
