"""The rows of files. Every function runs inside `state.read` or `state.database.write`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fairlead.errors import InvalidRequest, NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import FILES, claim_bytes

OWNER_MAX_FILES: Final = 10_000

_FILE = "id, owner, purpose, file_name, bytes, created_at_ms, expires_at_ms, mime_type"
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


def insert_file(con: Connection, file: StoredFile, now_ms: int) -> None:
    """Adds a file. `RateLimited` when the owner has as many as allowed, `OwnerStorageFull` and
    `StorageFull` when the owner's or all owners' bytes are used up.
    """
    (count,) = con.execute(
        f"SELECT count(*) FROM files WHERE owner = ? AND {_ALIVE}", [file.owner, now_ms]
    ).fetchone() or (0,)
    if count >= OWNER_MAX_FILES:
        raise RateLimited(f"A key keeps at most {OWNER_MAX_FILES} files: delete some.")
    claim_bytes(con, FILES, file.owner, file.bytes)
    put_file(con, file)


def put_file(con: Connection, file: StoredFile) -> None:
    """Adds a file that the gateway made, without the owner's limits."""
    con.execute(
        f"INSERT INTO files ({_FILE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            file.id,
            file.owner,
            file.purpose,
            file.file_name,
            file.bytes,
            file.created_at_ms,
            file.expires_at_ms,
            file.mime_type,
        ],
    )


def find_file(con: Connection, file_id: str, owner: str, now_ms: int) -> StoredFile:
    """The owner's file. `NotFound` when there is none, or it is another owner's."""
    row = con.execute(
        f"SELECT {_FILE} FROM files WHERE id = ? AND owner = ? AND {_ALIVE}",
        [file_id, owner, now_ms],
    ).fetchone()
    if row is None:
        raise NotFound(f"No such file: {file_id[:64]}.", param="id")
    return StoredFile(*row)


def find_files(
    con: Connection, file_ids: Sequence[str], owner: str, now_ms: int
) -> list[StoredFile]:
    """The owner's files with these ids, newest first."""
    rows = con.execute(
        f"SELECT {_FILE} FROM files WHERE list_contains(?, id) AND owner = ? AND {_ALIVE} "
        "ORDER BY created_at_ms DESC, id DESC",
        [list(file_ids), owner, now_ms],
    ).fetchall()
    return [StoredFile(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class FilePage:
    """A page of files of one purpose, or of all. `after` is the id of the last file of the page before."""

    purpose: str | None
    after: str | None
    limit: int
    order: Literal["asc", "desc"]


def list_files(
    con: Connection,
    owner: str,
    page: FilePage,
    now_ms: int,
) -> tuple[list[StoredFile], bool]:
    """A page of files and whether there are more."""
    purpose, after, order = page.purpose, page.after, page.order
    where, bound = f"owner = ? AND {_ALIVE}", [owner, now_ms]
    if purpose is not None:
        where, bound = f"{where} AND purpose = ?", [*bound, purpose]
    if after is not None:
        seen = con.execute(
            "SELECT created_at_ms FROM files WHERE id = ? AND owner = ?", [after, owner]
        ).fetchone()
        if seen is None:
            raise InvalidRequest("after is not the id of a file of yours.", param="after")
        side = ">" if order == "asc" else "<"
        where = f"{where} AND (created_at_ms, id) {side} (?, ?)"
        bound = [*bound, seen[0], after]
    way = "ASC" if order == "asc" else "DESC"
    rows = con.execute(
        f"SELECT {_FILE} FROM files WHERE {where} ORDER BY created_at_ms {way}, id {way} LIMIT ?",
        [*bound, page.limit + 1],
    ).fetchall()
    return [StoredFile(*row) for row in rows[: page.limit]], len(rows) > page.limit


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
