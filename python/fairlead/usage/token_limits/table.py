"""The table `token_limits`, and limits as the snapshot holds them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

from fairlead.store.file import Connection

ScopeType = Literal["global", "model", "provider"]
ResetInterval = Literal["daily", "weekly", "monthly"]

PERIODS: dict[ResetInterval, str] = {"daily": "day", "weekly": "week", "monthly": "month"}

_COLUMNS = (
    "id",
    "key_id",
    "scope_type",
    "scope_value",
    "token_limit",
    "reset_interval",
    "reset_minute",
    "enabled",
    "created_at_ms",
    "updated_at_ms",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM token_limits"
_INSERT = (
    f"INSERT INTO token_limits ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
)


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


def find_limit(con: Connection, limit_id: str) -> TokenLimit | None:
    """The limit with this id."""
    row = con.execute(f"{_SELECT} WHERE id = ?", [limit_id]).fetchone()
    return None if row is None else TokenLimit(*row)


def list_limits(con: Connection, key_id: str) -> list[TokenLimit]:
    """A key's limits, oldest first."""
    rows = con.execute(
        f"{_SELECT} WHERE key_id = ? ORDER BY created_at_ms, id", [key_id]
    ).fetchall()
    return [TokenLimit(*row) for row in rows]


def put_limit(con: Connection, limit: TokenLimit) -> None:
    """Stores the limit in place of the one with its id, in the writer."""
    delete_limit(con, limit.id)
    con.execute(_INSERT, [getattr(limit, name) for name in _COLUMNS])


def delete_limit(con: Connection, limit_id: str) -> bool:
    """Removes a limit, in the writer; False when there is none."""
    row = con.execute("DELETE FROM token_limits WHERE id = ? RETURNING 1", [limit_id]).fetchone()
    return row is not None


def compile_token_limits(con: Connection) -> dict[str, list[dict[str, Any]]]:
    """Limits in force by key, as the snapshot holds them."""
    limits: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in con.execute(f"{_SELECT} WHERE enabled ORDER BY created_at_ms, id").fetchall():
        limit = TokenLimit(*row)
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
