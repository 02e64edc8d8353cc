"""Events from settled calls: a key met one of its limits, or a combo's answer came from another
target than the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from fairlead import _core
from fairlead.moment import iso, moment_of
from fairlead.store.file import Connection
from fairlead.store.outbox import Event

EVENTS: Final = ("quota.exceeded", "combo.switched")
# Errors of requests that a limit of the key refused.
_LIMITS: Final = ("budget_exceeded", "token_limit_exceeded", "rate_limited")
HOUR_MS: Final = 3_600_000
# Strategies that call several targets anyway, so that a second call is no sign of failure.
HEDGED: Final = "hedged"
_STAGED: Final = frozenset({"fusion", "pipeline", HEDGED})


def read_combos(con: Connection) -> dict[str, tuple[str, str]]:
    """The name and strategy of the combo behind each name; `auto` channels are not stored."""
    rows = con.execute("SELECT name, strategy, config FROM combos").fetchall()
    combos = {
        name: (name, _effective_strategy(strategy, config)) for name, strategy, config in rows
    }
    spelled = {f"combo/{name}": one for name, one in combos.items()}
    known = combos | spelled
    aliases = con.execute("SELECT alias, target FROM model_aliases").fetchall()
    return known | {alias: known[target] for alias, target in aliases if target in known}


def _effective_strategy(strategy: str, config: str) -> str:
    # In a combo that hedges, two calls do not mean that the first target failed.
    return HEDGED if json.loads(config).get("hedging") else strategy


def read_names(con: Connection) -> dict[str, str]:
    """The names of keys by id."""
    return dict(con.execute("SELECT id, name FROM keys").fetchall())


def usage_events(
    rows: pl.DataFrame, combos: Mapping[str, tuple[str, str]], names: Mapping[str, str]
) -> Iterator[Event]:
    """The events of these records. Calls whose key asked for no log are left out."""
    announced = rows.filter(~pl.col("no_log"))
    limited = announced.filter(
        pl.col("error_kind").is_in(_LIMITS) & pl.col("key_id").is_not_null()
    ).unique(["key_id", "error_kind"], keep="first", maintain_order=True)
    for row in limited.iter_rows(named=True):
        yield _limit_met(row, names.get(row["key_id"]))
    switched = announced.filter((pl.col("attempts") > 1) & (pl.col("outcome") == "completed"))
    for row in switched.iter_rows(named=True):
        name, strategy = _combo(row["model"], combos)
        if name is not None and strategy not in _STAGED:
            yield _switched(row, name, strategy)


def _combo(
    model: str | None, combos: Mapping[str, tuple[str, str]]
) -> tuple[str, str] | tuple[None, str]:
    if model is None:
        return None, ""
    known = combos.get(model)
    if known is not None:
        return known
    return (model, "auto") if model == "auto" or model.startswith("auto/") else (None, "")


def _limit_met(row: Mapping[str, Any], name: str | None) -> Event:
    # A caller that is refused repeatedly is announced once an hour.
    hour = row["ts_ms"] // HOUR_MS
    data = {
        "scope": "key",
        "id": row["key_id"],
        "name": name,
        "provider": None,
        "reason": row["error_kind"],
        "resetsAt": None,
    }
    return Event("quota.exceeded", data, id=_id(f"{row['key_id']}:{row['error_kind']}:{hour}"))


def _switched(row: Mapping[str, Any], name: str, strategy: str) -> Event:
    data = {
        "requestId": row["request_id"],
        "timestamp": iso(moment_of(row["ts_ms"])),
        "keyId": row["key_id"],
        "combo": name,
        "strategy": strategy,
        "model": row["upstream_model"],
        "provider": row["provider"],
        "connectionId": row["connection_id"],
        "attempts": row["attempts"],
    }
    return Event("combo.switched", data, id=_id(f"{row['request_id']}:switched"))


def _id(text: str) -> str:
    return f"msg_{_core.hash_secret(text)[:40]}"
