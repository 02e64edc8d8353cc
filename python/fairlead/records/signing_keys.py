"""RSA keys that sign deliveries to a job's own listeners.

The two share no secret, so a listener verifies with the public key from `/.well-known/jwks.json`. The first key
is created when it is needed; after 90 days a new one takes over, and the old one is published for two more
days.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer
from fairlead.store.state import State

DAY_MS: Final = 86_400_000
SIGNS_FOR_MS: Final = 90 * DAY_MS
# Tokens are valid for minutes, but verifiers cache the key set for hours.
SHOWN_ON_MS: Final = 2 * DAY_MS
RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A signing key. `pem` is the private key in PKCS #8."""

    id: str
    pem: str

    def __repr__(self) -> str:
        return f"SigningKey({self.id})"


async def ensure_signing_key(state: State) -> None:
    """Creates a signing key unless one is valid for long enough; called before a listener that needs it is stored."""
    if await state.read(_newest_at_ms) + SIGNS_FOR_MS > now_ms():
        return
    pem, jwk = await asyncio.to_thread(_generate)
    key_id = str(jwk["kid"])

    def insert_key(con: Connection) -> None:
        at_ms = now_ms()
        # A concurrent call may have created one.
        if _newest_at_ms(con) + SIGNS_FOR_MS > at_ms:
            return
        sealed = state.sealer.seal(key_id, pem.encode())
        con.execute(
            "INSERT INTO webhook_signing_keys VALUES (?, ?, ?, ?)",
            [key_id, sealed, orjson.dumps(jwk).decode(), at_ms],
        )

    await state.record(insert_key)


def find_signing_key(con: Connection, sealer: Sealer) -> SigningKey | None:
    """The newest key, decrypted; `Internal` if it does not decrypt."""
    row = con.execute(
        "SELECT id, sealed FROM webhook_signing_keys ORDER BY created_at_ms DESC, id LIMIT 1"
    ).fetchone()
    return None if row is None else SigningKey(row[0], sealer.unseal(row[0], row[1]).decode())


def public_keys(con: Connection, at_ms: int) -> list[dict[str, Any]]:
    """The public keys whose signatures may still be in use, as JWKs, the newest first."""
    rows = con.execute(
        "SELECT public_jwk, created_at_ms FROM webhook_signing_keys ORDER BY created_at_ms DESC, id"
    ).fetchall()
    shown: list[dict[str, Any]] = []
    followed_at_ms: int | None = None
    for jwk, created_at_ms in rows:
        if followed_at_ms is None or at_ms - followed_at_ms < SHOWN_ON_MS:
            shown.append(orjson.loads(jwk))
        followed_at_ms = created_at_ms
    return shown


def _newest_at_ms(con: Connection) -> int:
    row = con.execute("SELECT max(created_at_ms) FROM webhook_signing_keys").fetchone()
    return -SIGNS_FOR_MS if row is None or row[0] is None else int(row[0])


def _generate() -> tuple[str, dict[str, Any]]:
    # The cryptography behind it takes long to import, and few need it.
    from joserfc.jwk import RSAKey  # noqa: PLC0415

    key = RSAKey.generate_key(RSA_BITS)
    public = key.as_dict(private=False)
    # The key id is the JWK thumbprint (RFC 7638).
    jwk = {
        "kty": "RSA",
        "n": public["n"],
        "e": public["e"],
        "kid": key.thumbprint(),
        "use": "sig",
        "alg": "RS256",
    }
    return key.as_pem(private=True).decode(), jwk
