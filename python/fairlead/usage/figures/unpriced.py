"""Requests of models without a price: their cost is not known, and sums leave it out."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from fairlead.store.file import Connection
from fairlead.usage.sums.span import Span

Group = Literal["provider", "model", "key", "endpoint", "connection", "combo", "day"]
# The groups of the history, of single requests.
_GROUPS: Final[dict[Group, str]] = {
    "provider": "provider",
    "model": "coalesce(upstream_model, model)",
    "key": "key_id",
    "endpoint": "endpoint",
    "connection": "connection_id",
    "combo": "combo",
    "day": "strftime(make_timestamp(ts_ms * 1000), '%Y-%m-%dT00:00:00.000Z')",
}
# SQL of the condition, over single requests.
IS_UNPRICED: Final = "list_contains(string_split(price_tiers, ','), 'unpriced')"


class UnpricedGroup(NamedTuple):
    """How many requests of a group had no price, or not for all of their models."""

    value: str | None
    requests: int


def read_unpriced(
    con: Connection, span: Span, group: Group, key_id: str | None = None
) -> list[UnpricedGroup]:
    """The groups with such requests, the largest first, as far back as single requests are stored."""
    bound: list[object] = [span.from_ms, span.until_ms]
    only = ""
    if key_id is not None:
        only = " AND key_id = ?"
        bound.append(key_id)
    # Built from the constants above; values from the caller are bound.
    rows = con.execute(
        f"SELECT {_GROUPS[group]} AS value, count(*) AS requests FROM requests WHERE ts_ms >= ? AND ts_ms < ? "
        f"AND {IS_UNPRICED}{only} GROUP BY value "
        "ORDER BY requests DESC, value",
        bound,
    ).fetchall()
    return [UnpricedGroup(*row) for row in rows]
