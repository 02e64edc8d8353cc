"""What control tells the relay of the cost of a call that control made: a header of the answer, which
the relay settles the request by and tells nobody else.
"""

from __future__ import annotations

import json
from typing import Final

BILL: Final = "x-fairlead-bill"


def bill(provider: str, usd_micros: int) -> dict[str, str]:
    """The header."""
    return {BILL: json.dumps({"provider": provider, "usd_micros": usd_micros})}


def lane_bill(place: int) -> dict[str, str]:
    """The header of a call by a connection that the relay chose, which knows what it costs there."""
    return {BILL: json.dumps({"lane": place})}
