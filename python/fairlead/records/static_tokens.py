"""Static tokens, `flb_...`, with which a person's own tools use the board at `/mcp`.

They do not expire; they end when they are revoked or their person is removed. Only a hash of the text is
stored, and revoked tokens stay in the list.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from uuid import uuid4

from fairlead import _core
from fairlead.errors import Conflict
from fairlead.moment import now_ms
from fairlead.records.people import Person, find_person
from fairlead.store.file import Connection
from fairlead.store.table import read_number

PREFIX = "flb_"
PER_PERSON_MAX = 100

_COLUMNS = "id, user_id, name, preview, created_at_ms, revoked_at_ms"


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A token as it is listed. `preview` is the part of its text that may be shown."""

    id: str
    user_id: str
    name: str
    preview: str
    created_at_ms: int
    revoked_at_ms: int | None


def make_static_token(user_id: str, name: str) -> tuple[str, StaticToken]:
    """A new token's text, and its record, not stored yet."""
    text = PREFIX + secrets.token_urlsafe(32)
    preview = f"{text[:8]}...{text[-4:]}"
    return text, StaticToken(str(uuid4()), user_id, name, preview, now_ms(), None)


def insert_static_token(con: Connection, token: StaticToken, text: str) -> None:
    """Stores a token, in the writer; `Conflict` when the person has too many in force."""
    query = "SELECT count(*) FROM static_tokens WHERE user_id = ? AND revoked_at_ms IS NULL"
    if read_number(con, query, [token.user_id]) >= PER_PERSON_MAX:
        raise Conflict(f"You have {PER_PERSON_MAX} static tokens already: revoke some first.")
    con.execute(
        "INSERT INTO static_tokens (id, user_id, name, hash, preview, created_at_ms) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [
            token.id,
            token.user_id,
            token.name,
            _core.hash_secret(text),
            token.preview,
            token.created_at_ms,
        ],
    )


def list_static_tokens(
    con: Connection, user_id: str, limit: int, offset: int
) -> tuple[list[StaticToken], int]:
    """A page of a person's tokens, newest first, with the revoked ones, and their total number."""
    rows = con.execute(
        f"SELECT {_COLUMNS} FROM static_tokens WHERE user_id = ? "
        "ORDER BY created_at_ms DESC, id LIMIT ? OFFSET ?",
        [user_id, limit, offset],
    ).fetchall()
    total = read_number(con, "SELECT count(*) FROM static_tokens WHERE user_id = ?", [user_id])
    return [StaticToken(*row) for row in rows], total


def revoke_static_token(con: Connection, user_id: str, token_id: str) -> bool:
    """Revokes a person's token, in the writer; False when none was in force."""
    ended = con.execute(
        "UPDATE static_tokens SET revoked_at_ms = ? "
        "WHERE id = ? AND user_id = ? AND revoked_at_ms IS NULL RETURNING 1",
        [now_ms(), token_id, user_id],
    ).fetchall()
    return bool(ended)


def find_token_person(con: Connection, text: str) -> Person | None:
    """The person of a token; None unless it is in force and the person may sign in."""
    if not text.startswith(PREFIX):
        return None
    row = con.execute(
        "SELECT user_id FROM static_tokens WHERE hash = ? AND revoked_at_ms IS NULL",
        [_core.hash_secret(text)],
    ).fetchone()
    return None if row is None else find_person(con, str(row[0]))
