"""The records of the authorization server, and their lifetimes."""

from __future__ import annotations

from dataclasses import dataclass, field

CODE_LIFETIME_MS = 60_000
ACCESS_LIFETIME_MS = 3_600_000
REFRESH_LIFETIME_MS = 30 * 24 * 3_600_000
# A spent code is remembered past its lifetime, so that showing it again is noticed.
SPENT_CODE_KEPT_MS = 3_600_000
# The lifetime of a client that nobody has approved; an approved one is permanent.
UNAPPROVED_CLIENT_KEPT_MS = 7 * 24 * 3_600_000

UNAPPROVED_CLIENTS_MAX = 10_000
# The most approvals of a user and tokens of an approval; beyond them the oldest is deleted.
GRANTS_PER_USER_MAX = 200
ACCESS_PER_GRANT_MAX = 100
REFRESH_PER_GRANT_MAX = 1000


@dataclass(slots=True)
class Client:
    """A registered public client. `name` is the name that it gave itself."""

    id: str
    name: str
    redirect_uri: str
    created_at_ms: int
    approved_at_ms: int | None = None


@dataclass(slots=True)
class Code:
    """An authorization code, by its hash, and the request that it is bound to."""

    hash: str
    grant_id: str
    client_id: str
    user_id: str
    redirect_uri: str
    challenge: str
    resource: str
    expires_at_ms: int
    is_spent: bool = False


@dataclass(slots=True)
class AccessToken:
    """An access token, by its hash."""

    hash: str
    grant_id: str
    created_at_ms: int
    expires_at_ms: int


@dataclass(slots=True)
class RefreshToken:
    """A refresh token, by its hash. `generation` counts the rotations of its grant; it was rotated
    when the next one was made.
    """

    hash: str
    grant_id: str
    generation: int
    created_at_ms: int
    expires_at_ms: int
    rotated_at_ms: int | None = None


@dataclass(slots=True)
class Grant:
    """A person's approval of a client. `generation` is that of its newest refresh token; `access`
    and `refresh` are the hashes of its tokens, oldest first.
    """

    id: str
    client_id: str
    user_id: str
    resource: str
    created_at_ms: int
    generation: int = 0
    access: list[str] = field(default_factory=list)
    refresh: list[str] = field(default_factory=list)
