"""A client: its registration in the fields of Hydra's admin API, and their rules.

Only the keyed hash of the secret is stored. A secret may be the caller's own choice, so the hash is
keyed with the data directory's key: the file alone does not allow guessing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import orjson

from fairlead.identity.issuer.fault import invalid_metadata
from fairlead.moment import iso, moment_of, now_ms

SECRET_BYTES: Final = 32
SECRET_MIN_CHARS: Final = 16
SECRET_MAX_CHARS: Final = 512
CLIENT_ID_MAX_CHARS: Final = 255
SCOPES_MAX: Final = 32
SCOPE_MAX_CHARS: Final = 1000
METADATA_MAX_BYTES: Final = 4096
LIST_MAX: Final = 32
TEXT_MAX_CHARS: Final = 2048
LIFESPAN_MAX_S: Final = 86_400
LIFESPAN_MIN_S: Final = 60

CLIENT_CREDENTIALS: Final = "client_credentials"
AUTH_METHODS: Final = ("client_secret_post", "client_secret_basic")
GRANT_TYPES: Final = frozenset(
    (
        CLIENT_CREDENTIALS,
        "authorization_code",
        "implicit",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "urn:ietf:params:oauth:grant-type:device_code",
    )
)
RESPONSE_TYPES: Final = frozenset(("token", "code", "id_token"))

# DID syntax: a method, then a method-specific id (W3C DID Core, section 3.1).
_DID = re.compile(r"did:[a-z0-9]+(?::(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})+)+")
# RFC 6749 appendix A.4.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_DURATION = re.compile(r"(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,7})s)?")


@dataclass(frozen=True, slots=True)
class Client:
    """A registered client. `key` is internal and independent of its id; `scopes` are those that it
    may ask for.
    """

    client_id: str
    key: str
    secret_hash: str = field(repr=False)
    client_name: str
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]
    scope: str
    audience: tuple[str, ...]
    redirect_uris: tuple[str, ...]
    owner: str
    token_endpoint_auth_method: str
    metadata: dict[str, Any]
    lifespan_s: int | None
    created_at_ms: int
    updated_at_ms: int
    scopes: frozenset[str] = frozenset()

    def fields(self) -> dict[str, Any]:
        """The registered fields, as they are stored and shown, without the secret."""
        return {
            "client_name": self.client_name,
            "grant_types": list(self.grant_types),
            "response_types": list(self.response_types),
            "scope": self.scope,
            "audience": list(self.audience),
            "redirect_uris": list(self.redirect_uris),
            "owner": self.owner,
            "token_endpoint_auth_method": self.token_endpoint_auth_method,
            "metadata": self.metadata,
            LIFESPAN: None if self.lifespan_s is None else f"{self.lifespan_s}s",
        }

    def view(self, secret: str | None = None) -> dict[str, Any]:
        """The client as the admin API shows it; with `secret` only in the answer that created it."""
        shown: dict[str, Any] = {"client_id": self.client_id, **self.fields()}
        if secret is not None:
            shown["client_secret"] = secret
        return {
            **shown,
            "client_secret_expires_at": 0,
            "created_at": iso(moment_of(self.created_at_ms)),
            "updated_at": iso(moment_of(self.updated_at_ms)),
        }


LIFESPAN: Final = "client_credentials_grant_access_token_lifespan"


class SecretHasher:
    """Keyed hashes of client secrets. Its printed form does not show the key."""

    def __init__(self, secret_key: bytes) -> None:
        self._key = hmac.digest(secret_key, b"fairlead issuer client secrets", "sha256")
        self._none = self.hash(secrets.token_urlsafe(SECRET_BYTES))

    def __repr__(self) -> str:
        return "SecretHasher(***)"

    def hash(self, secret: str) -> str:
        """The keyed hash of a secret, in hex."""
        return hmac.new(self._key, secret.encode(), hashlib.sha256).hexdigest()

    def fits(self, secret: str, client: Client | None) -> bool:
        """Whether this is the client's secret; takes equally long when there is no client."""
        expected = self._none if client is None else client.secret_hash
        same = hmac.compare_digest(self.hash(secret), expected)
        return same and client is not None


def new_secret() -> str:
    """32 random bytes, URL-safe, without padding."""
    return secrets.token_urlsafe(SECRET_BYTES)


def register(body: dict[str, Any], hasher: SecretHasher) -> tuple[Client, str]:
    """The client that a registration describes, and its secret. `IssuerFault` names the field that is wrong."""
    client_id = _text(body, "client_id") or str(uuid4())
    _check_id(client_id)
    secret = _secret(body) or new_secret()
    at_ms = now_ms()
    client = Client(
        client_id=client_id,
        key=str(uuid4()),
        secret_hash=hasher.hash(secret),
        created_at_ms=at_ms,
        updated_at_ms=at_ms,
        **_registered(body),
    )
    return client, secret


def replaced(client: Client, body: dict[str, Any], hasher: SecretHasher) -> Client:
    """The client with everything but its id taken from `body`; without a secret in it the old one
    stays, because the client could not sign in otherwise.
    """
    if (client_id := _text(body, "client_id")) and client_id != client.client_id:
        raise invalid_metadata("client_id", "is the client's name and does not change")
    secret = _secret(body)
    return replace(
        client,
        secret_hash=hasher.hash(secret) if secret else client.secret_hash,
        updated_at_ms=max(now_ms(), client.created_at_ms),
        **_registered(body),
    )


def patched(client: Client, operations: Any, hasher: SecretHasher) -> Client:
    """The client after a JSON Patch (RFC 6902) of its top-level fields: add, replace, remove."""
    if not isinstance(operations, list) or not operations:
        raise invalid_metadata("The body", "must be a JSON Patch: a list of operations")
    document = {**client.fields(), "client_id": client.client_id}
    for number, operation in enumerate(operations):
        action, path = (
            (operation.get("op"), operation.get("path"))
            if isinstance(operation, dict)
            else (None, None)
        )
        if action not in ("add", "replace", "remove") or not isinstance(path, str):
            raise invalid_metadata(
                f"Operation {number}", "must be an add, replace or remove with a path"
            )
        name = path.removeprefix("/").replace("~1", "/").replace("~0", "~")
        if not path.startswith("/") or (name not in document and name != "client_secret"):
            raise invalid_metadata(f"Operation {number}", "must name a field of the client")
        if action == "remove":
            document.pop(name, None)
        else:
            document[name] = operation.get("value")
    return replaced(client, document, hasher)


def stored(row: tuple[Any, ...]) -> Client:
    """The client of a row `key, client_id, secret_hash, fields, created_at_ms, updated_at_ms`."""
    key, client_id, secret_hash, fields, created_at_ms, updated_at_ms = row
    return Client(
        client_id=client_id,
        key=key,
        secret_hash=secret_hash,
        created_at_ms=created_at_ms,
        updated_at_ms=updated_at_ms,
        **_registered(orjson.loads(fields)),
    )


def scope_of(text: str, field: str = "scope") -> tuple[str, ...]:
    """The scopes of a space-separated list, each once, in order."""
    names = tuple(dict.fromkeys(text.split(" "))) if text else ()
    names = tuple(name for name in names if name)
    if len(text) > SCOPE_MAX_CHARS or len(names) > SCOPES_MAX:
        raise invalid_metadata(field, f"has more than {SCOPES_MAX} names or is too long")
    if not all(_SCOPE.fullmatch(name) for name in names):
        raise invalid_metadata(field, "must be names of visible ASCII, with a space between")
    return names


def seconds_of(duration: str | int | None, field: str) -> int | None:
    """Seconds of `1h30m`, as Hydra spells lifespans."""
    if duration is None or duration == "":
        return None
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    hours, minutes, rest = (int(part or 0) for part in (found.groups() if found else (0, 0, 0)))
    total = int(timedelta(hours=hours, minutes=minutes, seconds=rest).total_seconds())
    if not LIFESPAN_MIN_S <= total <= LIFESPAN_MAX_S:
        raise invalid_metadata(field, "must be a duration such as 30m, from 1m to 24h")
    return total


def _registered(body: dict[str, Any]) -> dict[str, Any]:
    """The fields of a registration besides id and secret. Unknown members are dropped."""
    method = _text(body, "token_endpoint_auth_method") or AUTH_METHODS[0]
    if method not in AUTH_METHODS:
        raise invalid_metadata("token_endpoint_auth_method", f"must be {' or '.join(AUTH_METHODS)}")
    scopes = scope_of(_text(body, "scope"))
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, dict) or len(orjson.dumps(metadata)) > METADATA_MAX_BYTES:
        raise invalid_metadata(
            "metadata", f"must be an object of at most {METADATA_MAX_BYTES} bytes"
        )
    responses = _texts(body, "response_types", ("token",))
    if not all(RESPONSE_TYPES.issuperset(each.split(" ")) for each in responses):
        raise invalid_metadata("response_types", "must be combinations of token, code and id_token")
    grants = _texts(body, "grant_types", (CLIENT_CREDENTIALS,))
    if not GRANT_TYPES.issuperset(grants):
        raise invalid_metadata("grant_types", "has a grant type that is not known")
    return {
        "client_name": _text(body, "client_name"),
        "grant_types": grants,
        "response_types": responses,
        "scope": " ".join(scopes),
        "scopes": frozenset(scopes),
        "audience": _texts(body, "audience", ()),
        "redirect_uris": _texts(body, "redirect_uris", ()),
        "owner": _text(body, "owner"),
        "token_endpoint_auth_method": method,
        "metadata": metadata,
        "lifespan_s": seconds_of(body.get(LIFESPAN), LIFESPAN),
    }


def _check_id(client_id: str) -> None:
    if len(client_id) > CLIENT_ID_MAX_CHARS or not re.fullmatch(r"[\x21-\x7e]+", client_id):
        raise invalid_metadata(
            "client_id", f"must be visible ASCII of at most {CLIENT_ID_MAX_CHARS} characters"
        )
    if client_id.startswith("did:") and not _DID.fullmatch(client_id):
        raise invalid_metadata(
            "client_id", "must be a DID such as did:<method>:<owner>:<agent>:<uuid>"
        )


def _secret(body: dict[str, Any]) -> str | None:
    secret = _text(body, "client_secret") or None
    if secret is not None and not SECRET_MIN_CHARS <= len(secret) <= SECRET_MAX_CHARS:
        raise invalid_metadata(
            "client_secret",
            f"must have {SECRET_MIN_CHARS} to {SECRET_MAX_CHARS} characters: 32 random bytes",
        )
    return secret


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > TEXT_MAX_CHARS or not value.isprintable():
        raise invalid_metadata(name, "must be a text without control characters")
    return value


def _texts(body: dict[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = body.get(name)
    if value is None or value == []:
        return default
    if (
        not isinstance(value, list)
        or len(value) > LIST_MAX
        or not all(isinstance(each, str) and 0 < len(each) <= TEXT_MAX_CHARS for each in value)
    ):
        raise invalid_metadata(name, f"must be a list of at most {LIST_MAX} texts")
    return tuple(value)
