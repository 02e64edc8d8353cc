"""Reading an issuer's answer to an introspection. Strict: `active` must be the JSON value `true`,
and a token without a subject or an expiry is refused.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard

from fairlead.calls.bearer import Bearer, BearerRefused

TEXT_MAX_CHARS: Final = 4096
# An issuer's clock may run ahead of ours by this much.
SKEW_S: Final = 60


class InvalidAnswer(Exception):
    """The issuer's answer is not JSON of the right shape."""


def read_answer(document: Any, now_s: float) -> Bearer:
    """The active token that `document` describes. `BearerRefused` for a token that is not active,
    `InvalidAnswer` for a document of another shape.
    """
    if not isinstance(document, dict) or not isinstance(document.get("active"), bool):
        raise InvalidAnswer
    if not document["active"]:
        raise BearerRefused("invalid", "The token is not active or has been revoked.")
    sub, expires_at_s = document.get("sub"), document.get("exp")
    if not isinstance(sub, str) or not 0 < len(sub) <= TEXT_MAX_CHARS or not _is_time(expires_at_s):
        raise BearerRefused("invalid", "The token has no subject or no expiry.")
    if expires_at_s <= now_s:
        raise BearerRefused("expired", "The token has expired.")
    begins_at_s = document.get("nbf", 0)
    if not _is_time(begins_at_s) or begins_at_s > now_s + SKEW_S:
        raise BearerRefused("invalid", "The token is not valid yet.")
    token_type = document.get("token_type", "Bearer")
    if not isinstance(token_type, str) or token_type.lower() != "bearer":
        raise BearerRefused("invalid", "The token is not a bearer token.")
    if document.get("token_use", "access_token") != "access_token":
        raise BearerRefused("invalid", "The token is not an access token.")
    scope, client_id = document.get("scope", ""), document.get("client_id", sub)
    if not isinstance(scope, str) or not isinstance(client_id, str):
        raise InvalidAnswer
    issued_at_s = document.get("iat")
    return Bearer(
        client_id=client_id,
        sub=sub,
        scopes=frozenset(scope.split()),
        expires_at_s=int(expires_at_s),
        issued_at_s=int(issued_at_s) if _is_time(issued_at_s) else None,
        audience=_audience(document.get("aud")),
        token_type=token_type,
        document=document,
    )


def _is_time(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53


def _audience(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
