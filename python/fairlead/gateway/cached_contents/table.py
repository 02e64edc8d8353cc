"""The rows of cached contents. Every function runs inside `state.read` or in the writer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, Final

from fairlead.errors import InvalidRequest, NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, claim_bytes

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


_NAMES: Final = ", ".join(field.name for field in fields(CachedContent))


def insert_cached(con: Connection, cached: CachedContent) -> None:
    """Adds a cached content. `RateLimited`, `OwnerStorageFull`, `StorageFull`."""
    delete_expired_cached(con, cached.created_at_ms)
    (count,) = con.execute(
        "SELECT count(*) FROM cached_contents WHERE owner = ?", [cached.owner]
    ).fetchone() or (0,)
    if count >= OWNER_MAX:
        raise RateLimited(f"A key has at most {OWNER_MAX} cached contents: delete some.")
    claim_bytes(con, DATABASE, cached.owner, cached.size_bytes)
    places = ", ".join("?" * len(fields(CachedContent)))
    con.execute(
        f"INSERT INTO cached_contents ({_NAMES}) VALUES ({places})",
        [getattr(cached, field.name) for field in fields(CachedContent)],
    )


def delete_expired_cached(con: Connection, now_ms: int) -> None:
    """Deletes cached contents that have expired or whose key was deleted, in the writer."""
    con.execute(
        "DELETE FROM cached_contents WHERE expires_at_ms <= ? OR owner NOT IN (SELECT id FROM keys)",
        [now_ms],
    )


def find_cached(con: Connection, cached_id: str, owner: str, now_ms: int) -> CachedContent:
    """The owner's cached content. `NotFound` when there is none, it expired, or it is another owner's."""
    row = con.execute(
        f"SELECT {_NAMES} FROM cached_contents WHERE id = ? AND owner = ? AND expires_at_ms > ?",
        [cached_id, owner, now_ms],
    ).fetchone()
    if row is None:
        raise NotFound(f"No such cached content: {cached_id[:64]}.", param="name")
    return CachedContent(*row)


def find_some_cached(
    con: Connection, ids: Collection[str], owner: str, now_ms: int
) -> list[CachedContent]:
    """The owner's cached contents with these ids."""
    rows = con.execute(
        f"SELECT {_NAMES} FROM cached_contents WHERE list_contains(?, id) AND owner = ? AND expires_at_ms > ?",
        [list(ids), owner, now_ms],
    ).fetchall()
    return [CachedContent(*row) for row in rows]


def list_cached(
    con: Connection, owner: str, after: str | None, limit: int, now_ms: int
) -> tuple[list[CachedContent], bool]:
    """A page, newest first, and whether there are more."""
    where = "owner = ? AND expires_at_ms > ?"
    bound: list[Any] = [owner, now_ms]
    if after is not None:
        seen = con.execute(
            "SELECT created_at_ms FROM cached_contents WHERE id = ? AND owner = ?", [after, owner]
        ).fetchone()
        if seen is None:
            raise InvalidRequest(
                "pageToken must be the nextPageToken of the page before.", param="pageToken"
            )
        where, bound = f"{where} AND (created_at_ms, id) < (?, ?)", [*bound, seen[0], after]
    rows = con.execute(
        f"SELECT {_NAMES} FROM cached_contents WHERE {where} ORDER BY created_at_ms DESC, id DESC LIMIT ?",
        [*bound, limit + 1],
    ).fetchall()
    return [CachedContent(*row) for row in rows[:limit]], len(rows) > limit


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
