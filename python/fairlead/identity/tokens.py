"""Management access tokens: `flm_` and 256 random bits, stored as SHA-256.

The scope is `read`, `write` or `admin`, each including those before it. The relay enforces it; this
is the table.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from fairlead import _core
from fairlead.errors import Conflict
from fairlead.moment import now_ms
from fairlead.store.file import Connection

Scope = Literal["read", "write", "admin"]

PREFIX = "flm_"
TOKENS_MAX = 1000

_COLUMNS = (
    "id",
    "name",
    "scope",
    "hash",
    "preview",
    "created_by",
    "created_at_ms",
    "expires_at_ms",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM management_tokens"
_INSERT = (
    f"INSERT INTO management_tokens ({', '.join(_COLUMNS)}) "
    f"VALUES ({', '.join('?' * len(_COLUMNS))})"
)


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A row of a token. `preview` is the part of its text that may be shown."""

    id: str
    name: str
    scope: Scope
    hash: str
    preview: str
    created_by: str | None
    created_at_ms: int
    expires_at_ms: int | None


def mint_token(
    name: str, scope: Scope, created_by: str | None, expires_at_ms: int | None
) -> tuple[str, StoredToken]:
    """The text of a new token, which is not stored, and its row."""
    text = PREFIX + secrets.token_urlsafe(32)
    preview = f"{text[:8]}...{text[-4:]}"
    digest = _core.hash_secret(text)
    return text, StoredToken(
        str(uuid4()), name, scope, digest, preview, created_by, now_ms(), expires_at_ms
    )


def insert_token(con: Connection, token: StoredToken) -> None:
    """Adds a token, in the writer; `Conflict` when there are too many."""
    if count_tokens(con) >= TOKENS_MAX:
        raise Conflict(f"There are {TOKENS_MAX} access tokens already: revoke some first.")
    con.execute(_INSERT, [getattr(token, column) for column in _COLUMNS])


def delete_token(con: Connection, token_id: str) -> bool:
    """Revokes a token, in the writer; whether there was one."""
    gone = con.execute(
        "DELETE FROM management_tokens WHERE id = ? RETURNING 1", [token_id]
    ).fetchall()
    return bool(gone)


def list_tokens(con: Connection, limit: int, offset: int) -> list[StoredToken]:
    """A page of tokens, newest first."""
    rows = con.execute(
        f"{_SELECT} ORDER BY created_at_ms DESC, id LIMIT ? OFFSET ?", [limit, offset]
    ).fetchall()
    return [StoredToken(*row) for row in rows]


def count_tokens(con: Connection) -> int:
    """The number of tokens."""
    row = con.execute("SELECT count(*) FROM management_tokens").fetchone()
    return int(row[0]) if row else 0


def compile_tokens(con: Connection) -> list[dict[str, Any]]:
    """Tokens as the snapshot holds them: those of users who may still manage, and the command
    line's.
    """
    rows = con.execute(
        "SELECT t.id, t.hash, t.scope, t.expires_at_ms FROM management_tokens t "
        "LEFT JOIN users u ON u.id = t.created_by "
        "WHERE t.created_by IS NULL OR (u.is_active AND u.role IN ('owner', 'admin')) "
        "ORDER BY t.created_at_ms, t.id"
    ).fetchall()
    names = ("id", "hash", "scope", "expires_at_ms")
    return [dict(zip(names, row, strict=True)) for row in rows]
