"""The table `users`: who may sign in, and what each may do.

`owner` and `admin` manage the gateway; `member` signs in and has only their own account. There is
one owner, whose address is `owner@localhost` until it is changed.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from fairlead.errors import Conflict, NotFound
from fairlead.moment import now_ms
from fairlead.store.file import Connection

Role = Literal["owner", "admin", "member"]
MANAGING_ROLES: frozenset[str] = frozenset({"owner", "admin"})

OWNER_EMAIL = "owner@localhost"
USERS_MAX = 10_000
EMAIL_MAX_CHARS = 254

_COLUMNS = (
    "id",
    "email",
    "name",
    "role",
    "is_active",
    "password_hash",
    "totp_sealed",
    "totp_pending_sealed",
    "totp_last_step",
    "created_at_ms",
    "updated_at_ms",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM users"
_INSERT = f"INSERT INTO users ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"


@dataclass(frozen=True, slots=True)
class User:
    """A row of a user. `totp_last_step` is the 30 s step of the last code that was accepted."""

    id: str
    email: str
    name: str
    role: Role
    is_active: bool
    password_hash: str | None
    totp_sealed: bytes | None
    totp_pending_sealed: bytes | None
    totp_last_step: int
    created_at_ms: int
    updated_at_ms: int

    @property
    def has_second_factor(self) -> bool:
        return self.totp_sealed is not None


def canonical_email(text: str) -> str:
    """The canonical spelling of an address; empty for a text that is longer than any address.

    The time of normalising combining characters grows by the square of their number.
    """
    if len(text) > EMAIL_MAX_CHARS:
        return ""
    return unicodedata.normalize("NFKC", text).strip().casefold()


def new_user(email: str, name: str, role: Role, password_hash: str | None) -> User:
    """A user that is not stored yet."""
    at_ms = now_ms()
    email = canonical_email(email)
    return User(str(uuid4()), email, name, role, True, password_hash, None, None, 0, at_ms, at_ms)


def insert_user(con: Connection, user: User) -> None:
    """Adds a user, in the writer; `Conflict` when the address is taken or there are too many."""
    refuse_taken(con, user.email)
    if count_users(con) >= USERS_MAX:
        raise Conflict(f"There are {USERS_MAX} users already: remove some first.")
    con.execute(_INSERT, [getattr(user, column) for column in _COLUMNS])


def refuse_taken(con: Connection, email: str) -> None:
    """`Conflict` when another user has this address."""
    if find_by_email(con, email) is not None:
        raise Conflict(f"There is a user with the address {email} already.", param="email")


def find_user(con: Connection, user_id: str) -> User | None:
    """The user with this id, or None."""
    return _one(con, f"{_SELECT} WHERE id = ?", [user_id])


def found_user(con: Connection, user_id: str) -> User:
    """The user with this id, or `NotFound`."""
    user = find_user(con, user_id)
    if user is None:
        raise NotFound("There is no user with this id.", param="id")
    return user


def find_by_email(con: Connection, email: str) -> User | None:
    """The user with this address in any spelling."""
    return _one(con, f"{_SELECT} WHERE email = ?", [canonical_email(email)])


def find_owner(con: Connection) -> User | None:
    """The owner, or None."""
    return _one(con, f"{_SELECT} WHERE role = 'owner'", [])


def find_by_identity(con: Connection, issuer: str, subject: str) -> User | None:
    """The user who is `subject` at an identity provider."""
    row = con.execute(
        "SELECT user_id FROM oidc_identities WHERE issuer = ? AND subject = ?", [issuer, subject]
    ).fetchone()
    return None if row is None else find_user(con, str(row[0]))


def bind_identity(con: Connection, user_id: str, issuer: str, subject: str) -> None:
    """Binds an identity to a user, in the writer."""
    con.execute(
        "INSERT INTO oidc_identities (issuer, subject, user_id, created_at_ms) VALUES (?, ?, ?, ?)",
        [issuer, subject, user_id, now_ms()],
    )


def has_identity(con: Connection, user_id: str, issuer: str) -> bool:
    """Whether this user has an identity at this provider."""
    return (
        con.execute(
            "SELECT 1 FROM oidc_identities WHERE user_id = ? AND issuer = ?", [user_id, issuer]
        ).fetchone()
        is not None
    )


def has_any_identity(con: Connection, user_id: str) -> bool:
    """Whether this user has an identity at any provider."""
    found = con.execute("SELECT 1 FROM oidc_identities WHERE user_id = ? LIMIT 1", [user_id])
    return found.fetchone() is not None


def list_users(con: Connection, limit: int, offset: int) -> list[User]:
    """A page of users, oldest first."""
    rows = con.execute(
        f"{_SELECT} ORDER BY created_at_ms, id LIMIT ? OFFSET ?", [limit, offset]
    ).fetchall()
    return [_user(row) for row in rows]


def count_users(con: Connection) -> int:
    """The number of users."""
    row = con.execute("SELECT count(*) FROM users").fetchone()
    return int(row[0]) if row else 0


@dataclass(frozen=True, slots=True)
class Profile:
    """The fields of a user that may be changed."""

    email: str
    name: str
    role: Role
    is_active: bool


def update_profile(con: Connection, user_id: str, profile: Profile) -> None:
    """Replaces a user's profile, in the writer."""
    con.execute(
        "UPDATE users SET email = ?, name = ?, role = ?, is_active = ?, updated_at_ms = ? "
        "WHERE id = ?",
        [
            canonical_email(profile.email),
            profile.name,
            profile.role,
            profile.is_active,
            now_ms(),
            user_id,
        ],
    )


def set_password_hash(con: Connection, user_id: str, password_hash: str) -> None:
    """Replaces the password, in the writer."""
    con.execute(
        "UPDATE users SET password_hash = ?, updated_at_ms = ? WHERE id = ?",
        [password_hash, now_ms(), user_id],
    )


def delete_user(con: Connection, user_id: str) -> None:
    """Deletes a user and everything of theirs, in the writer."""
    for table in (
        "sessions",
        "oidc_identities",
        "recovery_codes",
        "login_challenges",
        "static_tokens",
        "board_members",
        "key_group_members",
    ):
        con.execute(f"DELETE FROM {table} WHERE user_id = ?", [user_id])
    con.execute("DELETE FROM management_tokens WHERE created_by = ?", [user_id])
    con.execute("DELETE FROM users WHERE id = ?", [user_id])


def ensure_owner(con: Connection) -> User:
    """The owner; made without a password where there is none, in the writer."""
    owner = find_owner(con)
    if owner is None:
        owner = new_user(OWNER_EMAIL, "Owner", "owner", None)
        insert_user(con, owner)
    return owner


def _one(con: Connection, query: str, values: list[Any]) -> User | None:
    row = con.execute(query, values).fetchone()
    return None if row is None else _user(row)


def _user(row: tuple[Any, ...]) -> User:
    return User(**dict(zip(_COLUMNS, row, strict=True)))
