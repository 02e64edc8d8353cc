"""The rows of uploads and their parts. Every function runs inside `state.read` or in the writer.

pending -> completed | cancelled | expired
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.errors import Conflict, InvalidRequest, NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import FILES, claim_bytes
from fairlead.store.table import Table

LIVES_MS: Final = 3_600_000
"""Time in which an upload is completed."""
PENDING_MAX: Final = 100
PARTS_MAX: Final = 10_000
PART_MAX_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PartedUpload:
    """A row of an upload. `owner` is the key's id; `bytes` is the size that the file is to have."""

    id: str
    owner: str
    purpose: str
    file_name: str
    mime_type: str
    bytes: int
    file_expires_after_s: int | None
    status: str
    file_id: str | None
    created_at_ms: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class Part:
    """A row of a part, whose content is stored by its id."""

    id: str
    upload_id: str
    owner: str
    bytes: int
    created_at_ms: int


_UPLOADS: Final = Table("uploads", PartedUpload)
_PARTS: Final = Table("upload_parts", Part)


def insert_upload(con: Connection, upload: PartedUpload) -> None:
    """Adds an upload. `RateLimited` when the owner has as many that are pending as allowed."""
    if _UPLOADS.count(con, "owner = ? AND status = 'pending'", upload.owner) >= PENDING_MAX:
        raise RateLimited(f"A key has at most {PENDING_MAX} uploads that are not complete.")
    _UPLOADS.insert(con, upload)


def find_upload(con: Connection, upload_id: str, owner: str) -> PartedUpload:
    """The owner's upload. `NotFound` when there is none, or it is another owner's."""
    found = _UPLOADS.find(con, "id = ? AND owner = ?", upload_id, owner)
    if found is None:
        raise NotFound(f"No such upload: {upload_id[:64]}.", param="upload_id")
    return found


def find_pending(con: Connection, upload_id: str, owner: str, now_ms: int) -> PartedUpload:
    """The owner's upload that parts may be added to. `NotFound`, `Conflict`."""
    upload = find_upload(con, upload_id, owner)
    status = shown_status(upload, now_ms)
    if status != "pending":
        raise Conflict(f"The upload is {status}: begin another one.")
    return upload


def shown_status(upload: PartedUpload, now_ms: int) -> str:
    """The status as it is at this moment."""
    is_late = upload.status == "pending" and upload.expires_at_ms <= now_ms
    return "expired" if is_late else upload.status


def insert_part(con: Connection, part: Part) -> None:
    """Adds a part. `NotFound`, `Conflict`, `InvalidRequest` for parts that are more than the file,
    `OwnerStorageFull`, `StorageFull`.
    """
    upload = find_pending(con, part.upload_id, part.owner, part.created_at_ms)
    count, size = con.execute(
        "SELECT count(*), coalesce(sum(bytes), 0)::BIGINT FROM upload_parts WHERE upload_id = ?",
        [part.upload_id],
    ).fetchone() or (0, 0)
    if count >= PARTS_MAX:
        raise InvalidRequest(f"An upload has at most {PARTS_MAX} parts.", param="data")
    if size + part.bytes > 2 * upload.bytes + PART_MAX_BYTES:
        # A part may be sent again, since the parts of the file are chosen at its end.
        raise InvalidRequest("The parts are far more than the file is to have.", param="data")
    claim_bytes(con, FILES, part.owner, part.bytes)
    _PARTS.insert(con, part)


def chosen_parts(con: Connection, upload: PartedUpload, part_ids: Sequence[str]) -> list[Part]:
    """The parts in the order of their ids. `InvalidRequest` for one that the upload does not have, and where they
    are not the whole file.
    """
    known = {part.id: part for part in _PARTS.select(con, "WHERE upload_id = ?", upload.id)}
    if len(set(part_ids)) < len(part_ids):
        raise InvalidRequest("part_ids names a part twice.", param="part_ids")
    for at, part_id in enumerate(part_ids):
        if part_id not in known:
            raise InvalidRequest(
                f"part_ids[{at}] is not a part of this upload.", param=f"part_ids[{at}]"
            )
    parts = [known[part_id] for part_id in part_ids]
    size = sum(part.bytes for part in parts)
    if size != upload.bytes:
        raise InvalidRequest(
            f"The parts have {size} bytes, and the upload was started for {upload.bytes}.",
            param="part_ids",
        )
    return parts


def end_upload(
    con: Connection, upload: PartedUpload, status: str, file_id: str | None = None
) -> list[str]:
    """Ends a pending upload, and returns the ids of its parts, whose contents are to be deleted. `Conflict` when it has
    ended meanwhile.
    """
    ended = con.execute(
        "UPDATE uploads SET status = ?, file_id = ? WHERE id = ? AND status = 'pending' RETURNING id",
        [status, file_id, upload.id],
    ).fetchone()
    if ended is None:
        raise Conflict("The upload has ended meanwhile.")
    return _forget_parts(con, [upload.id])


def take_expired_uploads(con: Connection, now_ms: int) -> list[str]:
    """Deletes uploads that are a day past their end or whose key was deleted, and returns the ids of their parts."""
    rows = con.execute(
        "SELECT id FROM uploads WHERE expires_at_ms <= ? OR owner NOT IN (SELECT id FROM keys) LIMIT 1000",
        [now_ms - 24 * LIVES_MS],
    ).fetchall()
    gone = [str(row[0]) for row in rows]
    late = con.execute(
        "SELECT id FROM uploads WHERE status = 'pending' AND expires_at_ms <= ? LIMIT 1000",
        [now_ms],
    ).fetchall()
    if late:
        ids = [str(row[0]) for row in late]
        con.execute("UPDATE uploads SET status = 'expired' WHERE list_contains(?, id)", [ids])
        gone_parts = _forget_parts(con, ids)
    else:
        gone_parts = []
    if gone:
        gone_parts += _forget_parts(con, gone)
        con.execute("DELETE FROM uploads WHERE list_contains(?, id)", [gone])
    return gone_parts


def all_part_ids(con: Connection) -> set[str]:
    """The ids of all parts."""
    return {str(row[0]) for row in con.execute("SELECT id FROM upload_parts").fetchall()}


def _forget_parts(con: Connection, upload_ids: list[str]) -> list[str]:
    rows = con.execute(
        "DELETE FROM upload_parts WHERE list_contains(?, upload_id) RETURNING id", [upload_ids]
    ).fetchall()
    return [str(row[0]) for row in rows]
