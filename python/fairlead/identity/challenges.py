"""A sign-in that waits for its second factor: ten minutes, five attempts, one per user.

The pending token is 256 random bits, stored as a hash. It is no session: it permits nothing but the
second step.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import Enum

from fairlead import _core
from fairlead.identity.second_factor import take_code
from fairlead.identity.sessions import Way
from fairlead.identity.users import (
    User,
    bind_identity,
    find_by_identity,
    find_user,
    has_identity,
)
from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer

LIFETIME_S = 600
ATTEMPTS_MAX = 5


class Verdict(Enum):
    """The result of checking a code."""

    RIGHT = "right"
    WRONG = "invalid code"
    EXPIRED = "invalid or expired code"
    TOO_MANY = "too many attempts; please sign in again"


@dataclass(frozen=True, slots=True)
class ChallengeResult:
    """The result of one attempt. `user` is set when the challenge was found."""

    verdict: Verdict
    user: User | None = None
    way: Way = "password"


@dataclass(frozen=True, slots=True)
class AccountLink:
    """An identity at a provider that is bound to the user once the second factor was right."""

    issuer: str
    subject: str


def open_challenge(
    con: Connection,
    user_id: str,
    at_ms: int,
    way: Way = "password",
    account_link: AccountLink | None = None,
) -> str:
    """Opens a challenge in place of the user's earlier one, in the writer; returns the pending
    token.
    """
    con.execute(
        "DELETE FROM login_challenges WHERE user_id = ? OR expires_at_ms <= ?", [user_id, at_ms]
    )
    token = secrets.token_urlsafe(32)
    con.execute(
        "INSERT INTO login_challenges "
        "(user_id, hash, attempts, expires_at_ms, way, oidc_issuer, oidc_subject) "
        "VALUES (?, ?, 0, ?, ?, ?, ?)",
        [
            user_id,
            _core.hash_secret(token),
            at_ms + LIFETIME_S * 1000,
            way,
            account_link and account_link.issuer,
            account_link and account_link.subject,
        ],
    )
    return token


def challenged_user_id(con: Connection, token: str, at_ms: int) -> str | None:
    """The user whose sign-in waits under this token."""
    row = con.execute(
        "SELECT user_id FROM login_challenges WHERE hash = ? AND expires_at_ms > ?",
        [_core.hash_secret(token), at_ms],
    ).fetchone()
    return None if row is None else str(row[0])


def answer_challenge(
    con: Connection, sealer: Sealer, token: str, code: str, at_ms: int
) -> ChallengeResult:
    """Counts an attempt and checks its code, in the writer; a right code ends the challenge."""
    digest = _core.hash_secret(token)
    row = con.execute(
        "UPDATE login_challenges SET attempts = attempts + 1 "
        "WHERE hash = ? AND expires_at_ms > ? "
        "RETURNING user_id, attempts, way, oidc_issuer, oidc_subject",
        [digest, at_ms],
    ).fetchone()
    user = None if row is None else find_user(con, str(row[0]))
    if row is None or user is None or not user.is_active:
        return ChallengeResult(Verdict.EXPIRED)
    if row[1] > ATTEMPTS_MAX:
        return ChallengeResult(Verdict.TOO_MANY, user)
    if not take_code(con, sealer, user, code, at_ms):
        last = row[1] == ATTEMPTS_MAX
        return ChallengeResult(Verdict.TOO_MANY if last else Verdict.WRONG, user)
    con.execute("DELETE FROM login_challenges WHERE hash = ?", [digest])
    _, _, way, issuer, subject = row
    if issuer is not None:
        if has_identity(con, user.id, issuer) or find_by_identity(con, issuer, subject) is not None:
            return ChallengeResult(Verdict.EXPIRED)
        bind_identity(con, user.id, issuer, subject)
    return ChallengeResult(Verdict.RIGHT, user, way)
