"""Sessions: 256 random bits in a cookie, their SHA-256 in the table, thirty days at most."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fairlead import _core
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta, write_meta

COOKIE = "auth_token"
LIFETIME_S = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class NewSession:
    """`token` goes into the cookie and is kept nowhere else."""

    token: str
    hash: str


def mint_session() -> NewSession:
    """A fresh token and its hash."""
    token = secrets.token_urlsafe(32)
    return NewSession(token, _core.hash_secret(token))


def open_session(con: Connection, session: NewSession, replaced: str | None) -> None:
    """Stores a session instead of the one whose token the caller brought, in the writer."""
    at_ms = now_ms()
    if replaced is not None:
        end_session(con, replaced)
    sweep_sessions(con, at_ms)
    con.execute(
        "INSERT INTO sessions (hash, user_id, created_at_ms, expires_at_ms) VALUES (?, ?, ?, ?)",
        [session.hash, operator_id(con), at_ms, at_ms + LIFETIME_S * 1000],
    )


def end_session(con: Connection, token: str) -> None:
    """Deletes the session of this token, in the writer."""
    con.execute("DELETE FROM sessions WHERE hash = ?", [_core.hash_secret(token)])


def sweep_sessions(con: Connection, at_ms: int) -> int:
    """Deletes sessions that have expired by then, in the writer; returns how many."""
    return len(
        con.execute("DELETE FROM sessions WHERE expires_at_ms <= ? RETURNING 1", [at_ms]).fetchall()
    )


def compile_sessions(con: Connection) -> list[dict[str, Any]]:
    """What the relay gets of the sessions."""
    rows = con.execute(
        "SELECT hash, user_id, expires_at_ms FROM sessions ORDER BY created_at_ms, hash"
    ).fetchall()
    return [
        {"hash": digest, "user_id": user_id, "expires_at_ms": at} for digest, user_id, at in rows
    ]


def operator_id(con: Connection) -> str:
    """The id of the one user there is so far, made when it is first asked for, in the writer."""
    known = read_meta(con, "operator_id")
    if known is None:
        known = str(uuid4())
        write_meta(con, "operator_id", known)
    return known
