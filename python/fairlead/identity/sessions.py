"""Sessions: 256 random bits in a cookie, their SHA-256 in the table, thirty days at most."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from fairlead import _core
from fairlead.identity.users import MANAGING_ROLES
from fairlead.moment import now_ms
from fairlead.store.file import Connection

COOKIE = "auth_token"
LIFETIME_S = 30 * 24 * 3600
# The most sessions of a user; beyond them the oldest is deleted.
PER_USER_MAX = 100
USER_AGENT_MAX_CHARS = 200

Way = Literal["password", "oidc", "setup"]

_COLUMNS = (
    "id",
    "hash",
    "user_id",
    "way",
    "peer",
    "user_agent",
    "created_at_ms",
    "expires_at_ms",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM sessions"
_INSERT = f"INSERT INTO sessions ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be stored. `token` goes into the cookie and is stored nowhere; the rest is for
    the list.
    """

    token: str
    hash: str
    way: Way = "password"
    peer: str = ""
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A row of a session."""

    id: str
    hash: str
    user_id: str
    way: Way
    peer: str
    user_agent: str
    created_at_ms: int
    expires_at_ms: int


def mint_session(way: Way = "password", peer: str = "", user_agent: str = "") -> NewSession:
    """A new token and its hash."""
    token = secrets.token_urlsafe(32)
    shown = "".join(each for each in user_agent if each.isprintable())[:USER_AGENT_MAX_CHARS]
    return NewSession(token, _core.hash_secret(token), way, peer, shown)


def open_session(con: Connection, session: NewSession, user_id: str, replaced: str | None) -> None:
    """Stores a session in place of the caller's earlier one, in the writer."""
    at_ms = now_ms()
    if replaced is not None:
        end_session(con, replaced)
    sweep_sessions(con, at_ms)
    for old in list_sessions(con, user_id)[PER_USER_MAX - 1 :]:
        con.execute("DELETE FROM sessions WHERE id = ?", [old.id])
    con.execute(
        _INSERT,
        [
            str(uuid4()),
            session.hash,
            user_id,
            session.way,
            session.peer,
            session.user_agent,
            at_ms,
            at_ms + LIFETIME_S * 1000,
        ],
    )


def end_session(con: Connection, token: str) -> None:
    """Deletes the session of this token, in the writer."""
    con.execute("DELETE FROM sessions WHERE hash = ?", [_core.hash_secret(token)])


def end_sessions(con: Connection, user_id: str | None, *, but_token: str | None = None) -> int:
    """Deletes a user's sessions (everybody's for None) except the one with this token, in the
    writer; returns how many.
    """
    own_hash = _core.hash_secret(but_token) if but_token else ""
    ended = con.execute(
        "DELETE FROM sessions WHERE hash <> ? AND (?::VARCHAR IS NULL OR user_id = ?) RETURNING 1",
        [own_hash, user_id, user_id],
    ).fetchall()
    return len(ended)


def end_session_by_id(con: Connection, session_id: str, user_id: str | None) -> bool:
    """Deletes one session of a user (of anybody for None), in the writer; whether there was one."""
    ended = con.execute(
        "DELETE FROM sessions WHERE id = ? AND (?::VARCHAR IS NULL OR user_id = ?) RETURNING 1",
        [session_id, user_id, user_id],
    ).fetchall()
    return bool(ended)


def list_sessions(con: Connection, user_id: str | None) -> list[StoredSession]:
    """A user's sessions, or everybody's for None, newest first."""
    rows = con.execute(
        f"{_SELECT} WHERE expires_at_ms > ? AND (?::VARCHAR IS NULL OR user_id = ?) "
        "ORDER BY created_at_ms DESC, id",
        [now_ms(), user_id, user_id],
    ).fetchall()
    return [StoredSession(*row) for row in rows]


def find_session(con: Connection, digest: str, at_ms: int) -> StoredSession | None:
    """The session whose token has this hash, unless it has expired by then."""
    row = con.execute(f"{_SELECT} WHERE hash = ? AND expires_at_ms > ?", [digest, at_ms]).fetchone()
    return None if row is None else StoredSession(*row)


def sweep_sessions(con: Connection, at_ms: int) -> int:
    """Deletes expired sessions, in the writer; returns how many."""
    return len(
        con.execute("DELETE FROM sessions WHERE expires_at_ms <= ? RETURNING 1", [at_ms]).fetchall()
    )


def compile_sessions(con: Connection) -> list[dict[str, Any]]:
    """Sessions of users who may sign in, as the snapshot holds them."""
    rows = con.execute(
        "SELECT s.hash, s.user_id, s.expires_at_ms, u.role FROM sessions s "
        "JOIN users u ON u.id = s.user_id WHERE u.is_active ORDER BY s.created_at_ms, s.hash"
    ).fetchall()
    return [
        {
            "hash": digest,
            "user_id": user_id,
            "expires_at_ms": at,
            "manages": role in MANAGING_ROLES,
        }
        for digest, user_id, at, role in rows
    ]
