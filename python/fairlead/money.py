"""Money: integer micro-dollars inside, US dollars as a number where people read them."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

USD_MICROS: Final = 1_000_000


def micros_of(usd: float) -> int:
    """Micro-dollars of a sum, by way of its shortest decimal form, so that 0.1 is a tenth."""
    return round(Decimal(str(usd)) * USD_MICROS)


def usd_of(micros: int) -> float:
    """The sum in dollars."""
    return micros / USD_MICROS
