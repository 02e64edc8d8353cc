"""The rows of cached contents. Every function runs inside `state.read` or in the writer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from fairlead.errors import InvalidRequest, NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, claim_bytes
from fairlead.store.table import Page, Table

OWNER_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class CachedContent:
    """A row. `owner` is the key's id; `content` is a JSON object, `model` the model's name without a folder."""

    id: str
    owner: str
    model: str
    display_name: str | None
    content: str
    size_bytes: int
    created_at_ms: int
    updated_at_ms: int
    expires_at_ms: int


_CACHED: Final = Table("cached_contents", CachedContent)


def insert_cached(con: Connection, cached: CachedContent) -> None:
    """Adds a cached content. `RateLimited`, `OwnerStorageFull`, `StorageFull`."""
    delete_expired_cached(con, cached.created_at_ms)
    if _CACHED.count(con, "owner = ?", cached.owner) >= OWNER_MAX:
        raise RateLimited(f"A key has at most {OWNER_MAX} cached contents: delete some.")
    claim_bytes(con, DATABASE, cached.owner, cached.size_bytes)
    _CACHED.insert(con, cached)


def delete_expired_cached(con: Connection, now_ms: int) -> None:
    """Deletes cached contents that have expired or whose key was deleted, in the writer."""
    con.execute(
        "DELETE FROM cached_contents WHERE expires_at_ms <= ? OR owner NOT IN (SELECT id FROM keys)",
        [now_ms],
    )


def find_cached(con: Connection, cached_id: str, owner: str, now_ms: int) -> CachedContent:
    """The owner's cached content. `NotFound` when there is none, it expired, or it is another owner's."""
    found = _CACHED.find(
        con, "id = ? AND owner = ? AND expires_at_ms > ?", cached_id, owner, now_ms
    )
    if found is None:
        raise NotFound(f"No such cached content: {cached_id[:64]}.", param="name")
    return found


def find_some_cached(
    con: Connection, ids: Collection[str], owner: str, now_ms: int
) -> list[CachedContent]:
    """The owner's cached contents with these ids."""
    where = "WHERE list_contains(?, id) AND owner = ? AND expires_at_ms > ?"
    return _CACHED.select(con, where, list(ids), owner, now_ms)


def list_cached(
    con: Connection, owner: str, after: str | None, limit: int, now_ms: int
) -> tuple[list[CachedContent], bool]:
    """A page, newest first, and whether there are more."""
    missing = InvalidRequest(
        "pageToken must be the nextPageToken of the page before.", param="pageToken"
    )
    seen = _CACHED.position(con, after, missing, "owner = ?", owner)
    condition = "owner = ? AND expires_at_ms > ?"
    return _CACHED.page(con, condition, [owner, now_ms], Page(after, limit), seen)


def prolong_cached(
    con: Connection, cached_id: str, owner: str, expires_at_ms: int, now_ms: int
) -> CachedContent:
    """Sets when it expires. `NotFound`."""
    find_cached(con, cached_id, owner, now_ms)
    con.execute(
        "UPDATE cached_contents SET expires_at_ms = ?, updated_at_ms = ? WHERE id = ?",
        [expires_at_ms, now_ms, cached_id],
    )
    return find_cached(con, cached_id, owner, now_ms)


def delete_cached(con: Connection, cached_id: str, owner: str, now_ms: int) -> None:
    """Deletes it. `NotFound`."""
    find_cached(con, cached_id, owner, now_ms)
    con.execute("DELETE FROM cached_contents WHERE id = ?", [cached_id])
