"""Checks of id tokens: the signature, and the claims. Imported only where a provider is set up,
because the cryptography behind it takes long to import.
"""

from __future__ import annotations

from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
CLOCK_LEEWAY_S = 60


def read_keys(document: dict[str, Any]) -> KeySet:
    """The asymmetric signing keys of a document; `ValueError` when they cannot be read."""
    entries = document.get("keys")
    usable = [
        entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
        and entry.get("kty") in ("RSA", "EC", "OKP")
        and entry.get("use", "sig") == "sig"
    ]
    try:
        return KeySet.import_key_set({"keys": usable})
    except (JoseError, KeyError) as error:
        raise ValueError("the keys cannot be read") from error


def signed_claims(id_token: str, keys: KeySet) -> dict[str, Any]:
    """The claims of a token signed by one of the keys; else `ValueError`."""
    try:
        return dict(jwt.decode(id_token, keys, algorithms=ALGORITHMS).claims)
    except JoseError as error:
        raise ValueError(type(error).__name__) from error


def check_claims(claims: dict[str, Any], *, issuer: str, client_id: str, nonce: str) -> None:
    """`ValueError` unless the token is of this issuer, for this client and this sign-in, now."""
    registry = jwt.JWTClaimsRegistry(
        leeway=CLOCK_LEEWAY_S,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    try:
        registry.validate(claims)
    except JoseError as error:
        raise ValueError(str(error)) from error
    subject, audience = claims["sub"], claims["aud"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise ValueError("it has no usable subject")
    if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != client_id:
        raise ValueError("it is for another client")
