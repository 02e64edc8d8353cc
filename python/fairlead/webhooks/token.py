"""Verification of the token of a delivery to a job's own listener, as a receiver does it: for
`fairlead webhooks verify`. Imported only there, because the cryptography behind it takes long to
import.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any

import orjson
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet


@dataclass(frozen=True, slots=True)
class ReceivedDelivery:
    """A delivery as it was received: its headers and the body's exact bytes."""

    message_id: str
    timestamp: str
    signature: str
    body: bytes


def verify_token(
    keys: bytes, received: ReceivedDelivery, audience: str, now_s: int, tolerance_s: int
) -> None:
    """Returns when a delivery is genuine, for this listener and of this time; `ValueError` says why
    it is not. `keys` is the document at `/.well-known/jwks.json`.
    """
    claims = _signed(keys, received.signature)
    if claims.get("aud") != audience:
        raise ValueError(f"its token is for another listener than {audience}")
    if claims.get("jti") != received.message_id:
        raise ValueError("its token is of another message")
    sent_s = claims.get("iat")
    if type(sent_s) is not int or str(sent_s) != received.timestamp:
        raise ValueError("its token is of another time than webhook-timestamp says")
    digest = base64.urlsafe_b64encode(hashlib.sha256(received.body).digest()).decode()
    if claims.get("body_sha256") != digest.rstrip("="):
        raise ValueError("its token is of another body")
    if abs(now_s - sent_s) > tolerance_s:
        raise ValueError(f"its timestamp is more than {tolerance_s} s off")


def _signed(keys: bytes, token: str) -> dict[str, Any]:
    try:
        known = KeySet.import_key_set(orjson.loads(keys))
    except (JoseError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError("what was given as keys is no JWKS") from error
    try:
        return dict(jwt.decode(token, known, algorithms=["RS256"]).claims)
    except (JoseError, ValueError) as error:
        raise ValueError("no key of the JWKS verifies its token") from error
