"""The response header in which control reports the cost of a call that it made itself.

The relay settles the request by it and strips it before the answer goes to the caller.
"""

from __future__ import annotations

import json
from typing import Final

COST_HEADER: Final = "x-fairlead-bill"


def cost_header(provider: str, usd_micros: int) -> dict[str, str]:
    """The header for a known cost, in micro-dollars."""
    return {COST_HEADER: json.dumps({"provider": provider, "usd_micros": usd_micros})}


def lane_cost_header(index: int) -> dict[str, str]:
    """The header for a call over a connection that the relay chose and can price itself. `index` is the lane's
    index.
    """
    return {COST_HEADER: json.dumps({"lane": index})}
