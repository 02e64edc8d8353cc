"""The table `price_overrides`: prices that the operator set for a provider's models."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from fairlead.store.file import Connection
from fairlead.store.table import read_number

NAMES = (
    "input",
    "output",
    "cached_input",
    "cache_write",
    "cache_write_hour",
    "per_image",
    "per_second",
    "per_page",
    "per_query",
    "per_million_characters",
)

# A price in micro-dollars by the names in `NAMES`: per million tokens, or per picture, second and other units; in
# addition `tiers`, a list of such prices with their conditions.
Price = dict[str, Any]


def read_overrides(con: Connection) -> dict[str, dict[str, Price]]:
    """The overrides by provider and model."""
    found: dict[str, dict[str, Price]] = defaultdict(dict)
    rows = con.execute(
        f"SELECT provider, model, tiers, {', '.join(NAMES)} FROM price_overrides "
        "ORDER BY provider, model"
    ).fetchall()
    for provider, model, tiers, *prices in rows:
        price: Price = dict(zip(NAMES, prices, strict=True))
        found[provider][model] = price | {"tiers": json.loads(tiers) if tiers else []}
    return dict(found)


def put_override(con: Connection, provider: str, model: str, price: Price, at_ms: int) -> None:
    """Sets a price in place of an earlier override, in the writer."""
    delete_overrides(con, provider, model)
    tiers = json.dumps(price["tiers"]) if price["tiers"] else None
    values: list[Any] = [provider, model, tiers, *(price[name] for name in NAMES), at_ms]
    con.execute(
        f"INSERT INTO price_overrides (provider, model, tiers, {', '.join(NAMES)}, updated_at_ms) "
        f"VALUES ({', '.join('?' * len(values))})",
        values,
    )


def count_overrides(con: Connection) -> int:
    """The number of overrides."""
    return read_number(con, "SELECT count(*) FROM price_overrides")


def delete_overrides(con: Connection, provider: str | None, model: str | None) -> int:
    """Deletes the overrides of a model, of a provider, or all, in the writer; returns how many
    there were.
    """
    return read_number(
        con,
        "DELETE FROM price_overrides WHERE ($provider::VARCHAR IS NULL OR provider = $provider) "
        "AND ($model::VARCHAR IS NULL OR model = $model)",
        {"provider": provider, "model": model},
    )
