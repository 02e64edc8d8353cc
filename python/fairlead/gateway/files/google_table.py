"""The rows of uploads in Google's API, which come a piece at a time.

Every function runs in the writer or in `state.read`.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from fairlead.errors import InvalidRequest, NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.key_state import keys_out_of_force
from fairlead.store.owner_bytes import FILES, claim_bytes
from fairlead.store.table import Table

LIVES_MS: Final = 3_600_000
"""Time in which an upload is finished. Contents without a row are deleted after as long (`contents`)."""
PENDING_MAX: Final = 100
PIECES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class GoogleUpload:
    """A row of an upload. `owner` is the key's id; the content of a piece is stored by `piece_id`."""

    id: str
    token_hash: bytes
    owner: str
    file_id: str
    display_name: str
    mime_type: str
    bytes: int
    received_bytes: int
    pieces: int
    created_at_ms: int
    expires_at_ms: int

    def piece_id(self, number: int) -> str:
        """The id of a piece's content; numbers count from 0."""
        return f"{self.id}_{number}"

    def piece_ids(self) -> list[str]:
        """The ids of the pieces that were received."""
        return [self.piece_id(number) for number in range(self.pieces)]


_UPLOADS: Final = Table("google_uploads", GoogleUpload)


def hash_of(token: str) -> bytes:
    """The digest under which a token is stored."""
    return hashlib.sha256(token.encode()).digest()


def insert_google_upload(con: Connection, upload: GoogleUpload) -> None:
    """Adds an upload. Raises `RateLimited` if the owner has reached its maximum in progress."""
    con.execute("DELETE FROM google_uploads WHERE expires_at_ms <= ?", [upload.created_at_ms])
    if _UPLOADS.count(con, "owner = ?", upload.owner) >= PENDING_MAX:
        raise RateLimited(f"A key has at most {PENDING_MAX} uploads in progress.", retry_after_s=60)
    _UPLOADS.insert(con, upload)


def find_google_upload(con: Connection, session: str, now_ms: int) -> GoogleUpload:
    """The upload of an address. `NotFound` when there is none, its secret is wrong, it expired, or its key is not
    valid any more.
    """
    upload_id, _, token = session.partition(".")
    upload = _UPLOADS.find(con, "id = ? AND expires_at_ms > ?", upload_id, now_ms)
    if upload is None or not hmac.compare_digest(bytes(upload.token_hash), hash_of(token)):
        raise NotFound("There is no such upload: begin it at POST /upload/v1beta/files.")
    if keys_out_of_force(con, [upload.owner]):
        raise NotFound("The key of this upload is not valid any more.")
    return upload


def receive_piece(con: Connection, upload: GoogleUpload, size: int) -> GoogleUpload:
    """Counts a piece that was written behind those before. `InvalidRequest` where another one came meanwhile."""
    claim_bytes(con, FILES, upload.owner, size)
    row = con.execute(
        "UPDATE google_uploads SET received_bytes = received_bytes + ?, pieces = pieces + 1 "
        f"WHERE id = ? AND pieces = ? RETURNING {', '.join(_UPLOADS.columns)}",
        [size, upload.id, upload.pieces],
    ).fetchone()
    if row is None:
        raise InvalidRequest("Another piece was received at this offset.")
    return _UPLOADS.read(row)


def take_expired_google_uploads(con: Connection, now_ms: int) -> list[str]:
    """Deletes uploads that have expired or whose key was deleted, and returns the ids of their pieces."""
    gone = _UPLOADS.select(
        con, "WHERE expires_at_ms <= ? OR owner NOT IN (SELECT id FROM keys) LIMIT 1000", now_ms
    )
    for upload in gone:
        forget_google_upload(con, upload.id)
    return [piece_id for upload in gone for piece_id in upload.piece_ids()]


def forget_google_upload(con: Connection, upload_id: str) -> None:
    """Deletes an upload that has ended."""
    con.execute("DELETE FROM google_uploads WHERE id = ?", [upload_id])
