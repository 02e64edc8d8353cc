"""The rows of files. Every function runs inside `state.read` or `state.database.write`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.errors import InvalidRequest, NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import FILES, claim_bytes
from fairlead.store.table import Page, Table

OWNER_MAX_FILES: Final = 10_000

_ALIVE = "(expires_at_ms IS NULL OR expires_at_ms > ?)"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A row of a file. `owner` is the key's id; `bytes` is the size of the content, `mime_type` as it was
    uploaded.
    """

    id: str
    owner: str
    purpose: str
    file_name: str
    bytes: int
    created_at_ms: int
    expires_at_ms: int | None
    mime_type: str | None = None


_FILES: Final = Table("files", StoredFile)


def insert_file(con: Connection, file: StoredFile, now_ms: int) -> None:
    """Adds a file. `RateLimited` when the owner has as many as allowed, `OwnerStorageFull` and
    `StorageFull` when the owner's or all owners' bytes are used up.
    """
    if _FILES.count(con, f"owner = ? AND {_ALIVE}", file.owner, now_ms) >= OWNER_MAX_FILES:
        raise RateLimited(f"A key keeps at most {OWNER_MAX_FILES} files: delete some.")
    claim_bytes(con, FILES, file.owner, file.bytes)
    put_file(con, file)


def put_file(con: Connection, file: StoredFile) -> None:
    """Adds a file that the gateway made, without the owner's limits."""
    _FILES.insert(con, file)


def find_file(con: Connection, file_id: str, owner: str, now_ms: int) -> StoredFile:
    """The owner's file. `NotFound` when there is none, or it is another owner's."""
    found = _FILES.find(con, f"id = ? AND owner = ? AND {_ALIVE}", file_id, owner, now_ms)
    if found is None:
        raise NotFound(f"No such file: {file_id[:64]}.", param="id")
    return found


def find_files(
    con: Connection, file_ids: Sequence[str], owner: str, now_ms: int
) -> list[StoredFile]:
    """The owner's files with these ids, newest first."""
    where = f"WHERE list_contains(?, id) AND owner = ? AND {_ALIVE} ORDER BY created_at_ms DESC, id DESC"
    return _FILES.select(con, where, list(file_ids), owner, now_ms)


def list_files(
    con: Connection, owner: str, page: Page, now_ms: int, purpose: str | None = None
) -> tuple[list[StoredFile], bool]:
    """A page of the owner's files, of one purpose or of all, and whether there are more."""
    missing = InvalidRequest("after is not the id of a file of yours.", param="after")
    seen = _FILES.position(con, page.after, missing, "owner = ?", owner)
    condition, bound = f"owner = ? AND {_ALIVE}", [owner, now_ms]
    if purpose is not None:
        condition, bound = f"{condition} AND purpose = ?", [*bound, purpose]
    return _FILES.page(con, condition, bound, page, seen)


def delete_file(con: Connection, file_id: str, owner: str, now_ms: int) -> None:
    """Deletes the owner's file. `NotFound` when there is none."""
    find_file(con, file_id, owner, now_ms)
    forget_file(con, file_id, owner)


def forget_file(con: Connection, file_id: str, owner: str) -> None:
    """Deletes a file's row, if there is one."""
    con.execute("DELETE FROM files WHERE id = ? AND owner = ?", [file_id, owner])


def take_expired(con: Connection, now_ms: int) -> list[str]:
    """Deletes the rows of files that have expired or whose owner is deleted, and returns their ids.
    The input of a batch stays until the batch ends.
    """
    rows = con.execute(
        "SELECT id FROM files WHERE (expires_at_ms <= ? OR owner NOT IN (SELECT id FROM keys)) "
        "AND id NOT IN (SELECT input_file_id FROM batches WHERE ended_at_ms IS NULL) LIMIT 1000",
        [now_ms],
    ).fetchall()
    ids = [str(row[0]) for row in rows]
    if ids:
        con.execute("DELETE FROM files WHERE list_contains(?, id)", [ids])
    return ids


def all_ids(con: Connection) -> set[str]:
    """The ids of all files."""
    return {str(row[0]) for row in con.execute("SELECT id FROM files").fetchall()}
