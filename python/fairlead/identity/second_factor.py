"""The second factor: time-based codes (RFC 6238) and recovery codes, each good once.

A code is good for its own 30 s and those beside it, and only if no code of that time or a later one
was taken before. The secret is sealed with the user's id, and until it is confirmed with a purpose of its
own. Recovery codes have 80 random bits and are stored as hashes. Everything here runs in the writer, so
that two requests cannot use one code.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets

import pyotp

from fairlead import _core
from fairlead.identity.users import User
from fairlead.store.file import Connection
from fairlead.store.seal_purposes import pending_totp_of
from fairlead.store.sealer import Sealer

STEP_S = 30
STEPS_BESIDE = 1
RECOVERY_CODES = 10
RECOVERY_BYTES = 10


def begin_enrolment(con: Connection, sealer: Sealer, user_id: str) -> str:
    """A new secret (base32), which is in force once it is confirmed, in the writer."""
    secret = pyotp.random_base32(32)
    con.execute(
        "UPDATE users SET totp_pending_sealed = ? WHERE id = ?",
        [sealer.seal(pending_totp_of(user_id), secret.encode()), user_id],
    )
    return secret


def confirm_enrolment(
    con: Connection, sealer: Sealer, user: User, code: str, at_ms: int
) -> list[str] | None:
    """Turns the factor on if the code is right, in the writer: the recovery codes, else None."""
    if user.totp_pending_sealed is None:
        return None
    secret = sealer.unseal(pending_totp_of(user.id), user.totp_pending_sealed).decode()
    step = _matching_step(secret, code, at_ms, after=0)
    if step is None:
        return None
    con.execute(
        "UPDATE users SET totp_sealed = ?, totp_pending_sealed = NULL, "
        "totp_last_step = ? WHERE id = ?",
        [sealer.seal(user.id, secret.encode()), step, user.id],
    )
    return renew_recovery_codes(con, user.id)


def remove_second_factor(con: Connection, user_id: str) -> None:
    """Turns the factor off and forgets its codes, in the writer."""
    con.execute(
        "UPDATE users SET totp_sealed = NULL, totp_pending_sealed = NULL, totp_last_step = 0 "
        "WHERE id = ?",
        [user_id],
    )
    con.execute("DELETE FROM recovery_codes WHERE user_id = ?", [user_id])
    con.execute("DELETE FROM login_challenges WHERE user_id = ?", [user_id])


def renew_recovery_codes(con: Connection, user_id: str) -> list[str]:
    """Fresh recovery codes in place of all earlier ones, in the writer."""
    con.execute("DELETE FROM recovery_codes WHERE user_id = ?", [user_id])
    codes = [_recovery_code() for _ in range(RECOVERY_CODES)]
    con.executemany(
        "INSERT INTO recovery_codes (user_id, hash) VALUES (?, ?)",
        [[user_id, _recovery_hash(code)] for code in codes],
    )
    return codes


def count_recovery_codes(con: Connection, user_id: str) -> int:
    """The number of recovery codes that are left."""
    row = con.execute("SELECT count(*) FROM recovery_codes WHERE user_id = ?", [user_id]).fetchone()
    return int(row[0]) if row else 0


def take_code(con: Connection, sealer: Sealer, user: User, code: str, at_ms: int) -> bool:
    """Whether the code is good; it is spent then, in the writer."""
    if user.totp_sealed is None:
        return False
    spent = con.execute(
        "DELETE FROM recovery_codes WHERE user_id = ? AND hash = ? RETURNING 1",
        [user.id, _recovery_hash(code)],
    ).fetchone()
    if spent is not None:
        return True
    secret = sealer.unseal(user.id, user.totp_sealed).decode()
    step = _matching_step(secret, code, at_ms, after=user.totp_last_step)
    if step is None:
        return False
    con.execute("UPDATE users SET totp_last_step = ? WHERE id = ?", [step, user.id])
    return True


def otpauth_uri(secret: str, email: str) -> str:
    """The URI that authenticator apps read from a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name="fairlead")


def _matching_step(secret: str, code: str, at_ms: int, *, after: int) -> int | None:
    digits = re.sub(r"[\s-]", "", code)
    if re.fullmatch(r"[0-9]{6}", digits) is None:
        return None
    totp = pyotp.TOTP(secret, interval=STEP_S)
    now = at_ms // 1000 // STEP_S
    found = None
    for step in range(now - STEPS_BESIDE, now + STEPS_BESIDE + 1):
        if hmac.compare_digest(totp.generate_otp(step), digits) and step > after:
            found = step
    return found


def _recovery_code() -> str:
    text = base64.b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode().lower()
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))


def _recovery_hash(code: str) -> str:
    return _core.hash_secret(re.sub(r"[^a-z0-9]", "", code.lower()))
