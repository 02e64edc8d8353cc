"""Webhook endpoints, and the secrets that sign their deliveries.

In this room and not in `fairlead.webhooks`, because any room that accepts a webhook in a call (for a crawl, a
batch) creates endpoints in the transaction of its record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import uuid4

import structlog

from fairlead.errors import Internal
from fairlead.events import Surface
from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer
from fairlead.store.table import Table

EndpointState = Literal["enabled", "disabled", "disabled_due_to_failed_deliveries"]
"""Disabled by its owner, or by the engine: then `reason` says why."""

# During rotations; the oldest secret is dropped beyond this number.
SECRETS_MAX: Final = 5
TAIL_CHARS: Final = 4

log = structlog.get_logger("fairlead.webhooks")

_MINE = "surface = ? AND owner IS NOT DISTINCT FROM ?"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint. `failing_since_ms` is the first failure since the last success, `not_before_ms` the end of
    its `Retry-After`.
    """

    id: str
    surface: Surface
    owner: str | None
    name: str | None
    url: str
    events: list[str]
    state: EndpointState
    reason: str | None
    failing_since_ms: int | None
    not_before_ms: int
    created_at_ms: int
    updated_at_ms: int


_ENDPOINTS: Final = Table("webhook_endpoints", Endpoint)


@dataclass(frozen=True, slots=True)
class SecretPreview:
    """The part of a secret that may be shown; the secret is valid until `expires_at_ms`, None for no end."""

    endpoint_id: str
    tail: str
    created_at_ms: int
    expires_at_ms: int | None


# Many parameters: it makes a record, whose optional fields are named where they are given.
def new_endpoint(
    surface: Surface,
    url: str,
    events: Sequence[str],
    at_ms: int,
    *,
    owner: str | None = None,
    name: str | None = None,
    enabled: bool = True,
) -> Endpoint:
    """An endpoint that is not stored yet; `url` comes from `Egress.check_target`."""
    state: EndpointState = "enabled" if enabled else "disabled"
    return Endpoint(
        str(uuid4()), surface, owner, name, url, list(events), state, None, None, 0, at_ms, at_ms
    )


def insert_endpoint(con: Connection, sealer: Sealer, endpoint: Endpoint, secret: str) -> None:
    """Stores an endpoint with its first secret (`whsec_...`), in the writer."""
    insert_endpoint_without_secret(con, endpoint)
    _insert_secret(con, sealer, endpoint.id, secret, endpoint.created_at_ms)


def insert_endpoint_without_secret(con: Connection, endpoint: Endpoint) -> None:
    """Stores an endpoint whose deliveries are not signed with a secret, in the writer."""
    _ENDPOINTS.insert(con, endpoint)


def update_endpoint(con: Connection, endpoint: Endpoint) -> None:
    """Replaces an endpoint's row, in the writer."""
    _ENDPOINTS.update(con, endpoint)


def delete_endpoint(con: Connection, endpoint_id: str) -> None:
    """Deletes an endpoint with its secrets and deliveries, in the writer."""
    delete_endpoints(con, [endpoint_id])


def delete_endpoints(con: Connection, endpoint_ids: Sequence[str]) -> None:
    """Deletes endpoints with their secrets and deliveries, in the writer."""
    if not endpoint_ids:
        return
    con.execute(
        "DELETE FROM webhook_endpoints WHERE list_contains(?::VARCHAR[], id)", [endpoint_ids]
    )
    for table in ("webhook_secrets", "webhook_deliveries", "webhook_attempts"):
        con.execute(
            f"DELETE FROM {table} WHERE list_contains(?::VARCHAR[], endpoint_id)", [endpoint_ids]
        )


def delete_owned_endpoints(con: Connection, surface: Surface, owner: str) -> None:
    """Deletes every endpoint of an owner that was removed, in the writer."""
    rows = con.execute(f"SELECT id FROM webhook_endpoints WHERE {_MINE}", [surface, owner])
    delete_endpoints(con, [row[0] for row in rows.fetchall()])


def idle_endpoints(con: Connection, surface: Surface) -> list[tuple[str, str]]:
    """Id and owner of each endpoint of a surface that has an owner and no pending delivery."""
    return con.execute(
        "SELECT id, owner FROM webhook_endpoints WHERE surface = ? AND owner IS NOT NULL AND id "
        "NOT IN (SELECT endpoint_id FROM webhook_deliveries WHERE state = 'pending')",
        [surface],
    ).fetchall()


def find_endpoint(
    con: Connection, surface: Surface, endpoint_id: str, owner: str | None = None
) -> Endpoint | None:
    """The endpoint with this id, if it has this surface and owner."""
    return _ENDPOINTS.find(con, f"id = ? AND {_MINE}", endpoint_id, surface, owner)


def endpoints_by_id(con: Connection, endpoint_ids: Sequence[str]) -> dict[str, Endpoint]:
    """The endpoints with these ids, of any surface."""
    rest = "WHERE id IN (SELECT unnest(?::VARCHAR[]))"
    return {each.id: each for each in _ENDPOINTS.select(con, rest, list(endpoint_ids))}


def list_endpoints(
    con: Connection, surface: Surface, limit: int, offset: int, owner: str | None = None
) -> list[Endpoint]:
    """A page of endpoints of a surface and owner, oldest first."""
    rest = f"WHERE {_MINE} ORDER BY created_at_ms, id LIMIT ? OFFSET ?"
    return _ENDPOINTS.select(con, rest, surface, owner, limit, offset)


def list_endpoints_after(
    con: Connection, surface: Surface, owner: str, after: tuple[int, str] | None, limit: int
) -> list[Endpoint]:
    """A page of endpoints that follows `after` (creation time and id) in the order of `list_endpoints`."""
    at_ms, endpoint_id = after or (-1, "")
    rest = f"WHERE {_MINE} AND (created_at_ms, id) > (?, ?) ORDER BY created_at_ms, id LIMIT ?"
    return _ENDPOINTS.select(con, rest, surface, owner, at_ms, endpoint_id, limit)


def count_endpoints(con: Connection, surface: Surface, owner: str | None = None) -> int:
    """The number of endpoints of a surface and owner."""
    return _ENDPOINTS.count(con, _MINE, surface, owner)


@dataclass(frozen=True, slots=True)
class SecretChange:
    """A new secret, and how long earlier ones stay valid at most."""

    secret: str
    keep_ms: int
    at_ms: int


def rotate_secret(con: Connection, sealer: Sealer, endpoint_id: str, change: SecretChange) -> None:
    """Adds a secret, in the writer."""
    keep_ms, at_ms = change.keep_ms, change.at_ms
    con.execute(
        "DELETE FROM webhook_secrets WHERE endpoint_id = ? AND expires_at_ms <= ?",
        [endpoint_id, at_ms],
    )
    if keep_ms == 0:
        con.execute("DELETE FROM webhook_secrets WHERE endpoint_id = ?", [endpoint_id])
    con.execute(
        "UPDATE webhook_secrets SET expires_at_ms = least(coalesce(expires_at_ms, ?), ?) "
        "WHERE endpoint_id = ?",
        [at_ms + keep_ms, at_ms + keep_ms, endpoint_id],
    )
    con.execute(
        "DELETE FROM webhook_secrets WHERE id IN (SELECT id FROM webhook_secrets "
        "WHERE endpoint_id = ? ORDER BY created_at_ms DESC, id OFFSET ?)",
        [endpoint_id, SECRETS_MAX - 1],
    )
    _insert_secret(con, sealer, endpoint_id, change.secret, at_ms)


def live_secrets(
    con: Connection, sealer: Sealer, endpoint_ids: Sequence[str], at_ms: int
) -> dict[str, list[str]]:
    """The valid secrets of each endpoint, decrypted, newest first; for signing only. A secret that does not
    decrypt is logged and left out.
    """
    rows = con.execute(
        "SELECT endpoint_id, id, sealed FROM webhook_secrets "
        "WHERE endpoint_id IN (SELECT unnest(?::VARCHAR[])) "
        "AND (expires_at_ms IS NULL OR expires_at_ms > ?) ORDER BY created_at_ms DESC, id",
        [list(endpoint_ids), at_ms],
    ).fetchall()
    opened: dict[str, list[str]] = {}
    for endpoint_id, secret_id, sealed in rows:
        try:
            opened.setdefault(endpoint_id, []).append(sealer.unseal(secret_id, sealed).decode())
        except Internal:
            log.error("a webhook's secret cannot be decrypted", endpoint=endpoint_id)
    return opened


def secret_previews(
    con: Connection, endpoint_ids: Sequence[str], at_ms: int
) -> dict[str, list[SecretPreview]]:
    """Previews of the valid secrets of each endpoint, newest first."""
    rows = con.execute(
        "SELECT endpoint_id, tail, created_at_ms, expires_at_ms FROM webhook_secrets "
        "WHERE endpoint_id IN (SELECT unnest(?::VARCHAR[])) "
        "AND (expires_at_ms IS NULL OR expires_at_ms > ?) ORDER BY created_at_ms DESC, id",
        [list(endpoint_ids), at_ms],
    ).fetchall()
    previews: dict[str, list[SecretPreview]] = {}
    for row in rows:
        previews.setdefault(row[0], []).append(SecretPreview(*row))
    return previews


def _insert_secret(
    con: Connection, sealer: Sealer, endpoint_id: str, secret: str, at_ms: int
) -> None:
    secret_id = str(uuid4())
    values: list[Any] = [
        secret_id,
        endpoint_id,
        sealer.seal(secret_id, secret.encode()),
        secret[-TAIL_CHARS:],
        at_ms,
        None,
    ]
    con.execute("INSERT INTO webhook_secrets VALUES (?, ?, ?, ?, ?, ?)", values)
