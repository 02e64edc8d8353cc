"""The table `token_limits`, and limits as the snapshot holds them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead.store.file import Connection
from fairlead.store.table import Table

ScopeType = Literal["global", "model", "provider"]
ResetInterval = Literal["daily", "weekly", "monthly"]

PERIODS: dict[ResetInterval, str] = {"daily": "day", "weekly": "week", "monthly": "month"}


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """A row of a limit. `reset_minute` is the minute of the day, UTC."""

    id: str
    key_id: str
    scope_type: ScopeType
    scope_value: str | None
    token_limit: int
    reset_interval: ResetInterval
    reset_minute: int
    enabled: bool
    created_at_ms: int
    updated_at_ms: int


_LIMITS: Final = Table("token_limits", TokenLimit)


def find_limit(con: Connection, limit_id: str) -> TokenLimit | None:
    """The limit with this id."""
    return _LIMITS.find(con, "id = ?", limit_id)


def list_limits(con: Connection, key_id: str) -> list[TokenLimit]:
    """A key's limits, oldest first."""
    return _LIMITS.select(con, "WHERE key_id = ? ORDER BY created_at_ms, id", key_id)


def put_limit(con: Connection, limit: TokenLimit) -> None:
    """Stores the limit in place of the one with its id, in the writer."""
    delete_limit(con, limit.id)
    _LIMITS.insert(con, limit)


def delete_limit(con: Connection, limit_id: str) -> bool:
    """Removes a limit, in the writer; False when there is none."""
    row = con.execute("DELETE FROM token_limits WHERE id = ? RETURNING 1", [limit_id]).fetchone()
    return row is not None


def compile_token_limits(con: Connection) -> dict[str, list[dict[str, Any]]]:
    """Limits in force by key, as the snapshot holds them."""
    limits: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for limit in _LIMITS.select(con, "WHERE enabled ORDER BY created_at_ms, id"):
        limits[limit.key_id].append(
            {
                "id": limit.id,
                "name": "tokenLimit",
                "unit": "tokens",
                "amount": limit.token_limit,
                "period": {PERIODS[limit.reset_interval]: limit.reset_minute},
                "scope": "all"
                if limit.scope_value is None
                else {limit.scope_type: limit.scope_value},
            }
        )
    return limits
