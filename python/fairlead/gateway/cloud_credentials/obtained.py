"""A credential that was obtained, and the failure to obtain one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

# A longer reason would be a page of some proxy.
REASON_MAX_CHARS: Final = 300


class NotObtained(Exception):
    """There is no credential; the text says why, with no part of a secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:REASON_MAX_CHARS])


@dataclass(frozen=True, slots=True)
class Obtained:
    """AWS keys, or an access token. `expires_at_ms` is UTC; None means that it does not end."""

    aws: dict[str, str | None] | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    expires_at_ms: int | None = None


def json_object(body: bytes, source: str) -> dict[str, Any]:
    """The JSON object of an answer; `NotObtained` for anything else."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise NotObtained(f"{source} answered without a JSON object.")
    return document


def text_of(document: dict[str, Any], name: str, source: str) -> str:
    """A text of the document; `NotObtained` where it is missing."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise NotObtained(f"{source} answered without {name}.")
    return value


def moment_ms(text: str, source: str) -> int:
    """An RFC 3339 time as UTC milliseconds; `NotObtained` for any other text."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError
    except ValueError:
        raise NotObtained(f"{source} answered with an expiry that is no time.") from None
    return int(moment.timestamp() * 1000)


def aws_keys(document: dict[str, Any], source: str) -> Obtained:
    """The temporary keys in an answer of the metadata services."""
    keys: dict[str, str | None] = {
        "access_key_id": text_of(document, "AccessKeyId", source),
        "secret_access_key": text_of(document, "SecretAccessKey", source),
        "session_token": text_of(document, "Token", source),
    }
    expires_at_ms = moment_ms(text_of(document, "Expiration", source), source)
    return Obtained(aws=keys, expires_at_ms=expires_at_ms)


def bearer_token(document: dict[str, Any], at_ms: int, source: str) -> Obtained:
    """The access token in an answer of a token service (RFC 6749, section 5.1), asked at `at_ms`."""
    lifetime_s = document.get("expires_in")
    if isinstance(lifetime_s, bool) or not isinstance(lifetime_s, int | float) or lifetime_s <= 0:
        raise NotObtained(f"{source} answered without expires_in.")
    token = text_of(document, "access_token", source)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise NotObtained(f"{source} answered with a token that no header can contain.")
    return Obtained(token=token, expires_at_ms=at_ms + int(lifetime_s * 1000))
