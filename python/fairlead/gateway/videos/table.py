"""The rows of videos. Every function runs inside `state.read` or `state.record`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.errors import NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.table import Page, Table

ACTIVE_OF_OWNER_MAX: Final = 50
ACTIVE_MAX: Final = 500
KEPT_MS: Final = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of a video operation. `owner` is the key's id, `model` the name that the caller used,
    `provider_operation` the provider's name of the operation, empty while a provider is asked to
    begin it. `response` and `error` are JSON texts; an operation that has ended has one of them.
    """

    id: str
    owner: str
    model: str
    connection_id: str
    provider_operation: str
    response: str | None
    error: str | None
    created_at_ms: int
    expires_at_ms: int
    ended_at_ms: int | None
    proxy: str | None = None
    """Through which proxy it was begun, as the relay names it; None where an older version began it."""
    request: str | None = None
    """The request in OpenAI's format, a JSON text; None if it was in Google's."""
    progress: int | None = None
    """The last progress that the provider reported, 0 to 100."""


@dataclass(frozen=True, slots=True)
class VideoFile:
    """The address of a video at its provider."""

    id: str
    operation_id: str
    owner: str
    connection_id: str
    uri: str


_OPERATIONS: Final = Table("video_operations", Operation)
# The owner's videos that were asked for in OpenAI's words.
_VIDEO: Final = "owner = ? AND request IS NOT NULL"
_FILES: Final = Table("video_files", VideoFile)


def check_capacity(con: Connection, owner: str) -> None:
    """Raises `RateLimited` if the owner, or the gateway, has reached its maximum in progress."""
    own, all_ = con.execute(
        "SELECT count(*) FILTER (WHERE owner = ?), count(*) FROM video_operations "
        "WHERE ended_at_ms IS NULL",
        [owner],
    ).fetchone() or (0, 0)
    if own >= ACTIVE_OF_OWNER_MAX or all_ >= ACTIVE_MAX:
        raise RateLimited(
            f"A key has at most {ACTIVE_OF_OWNER_MAX} videos in progress, the gateway {ACTIVE_MAX}: "
            "wait for one to end.",
            retry_after_s=30,
        )


def insert_operation(con: Connection, operation: Operation) -> None:
    """Adds an operation, begun or not."""
    _OPERATIONS.insert(con, operation)


def begin_operation(
    con: Connection, operation_id: str, connection_id: str, provider_operation: str, proxy: str
) -> None:
    """Stores the connection that began the video, through which proxy, and the provider's name of it."""
    con.execute(
        "UPDATE video_operations SET connection_id = ?, provider_operation = ?, proxy = ? WHERE id = ?",
        [connection_id, provider_operation, proxy, operation_id],
    )


def proxy_of_operation(con: Connection, operation_id: str) -> str | None:
    """Through which proxy a video was begun."""
    query = "SELECT proxy FROM video_operations WHERE id = ?"
    row = con.execute(query, [operation_id]).fetchone()
    return None if row is None else row[0]


def forget_operation(con: Connection, operation_id: str) -> None:
    """Deletes an operation that no provider took."""
    con.execute(
        "DELETE FROM video_operations WHERE id = ? AND provider_operation = ''", [operation_id]
    )


def find_operation(con: Connection, operation_id: str, owner: str, model: str) -> Operation:
    """The owner's operation of this model. `NotFound` when there is none, or it is another owner's."""
    mine = "id = ? AND owner = ? AND model = ?"
    found = _OPERATIONS.find(con, mine, operation_id, owner, model)
    if found is None:
        raise NotFound(f"No such operation: {operation_id[:64]}.", param="name")
    return found


def find_video(con: Connection, video_id: str, owner: str) -> Operation:
    """The owner's video that was asked for in OpenAI's words. `NotFound` when there is none, or it is another
    owner's.
    """
    found = _OPERATIONS.find(con, f"id = ? AND {_VIDEO}", video_id, owner)
    if found is None:
        raise _missing(video_id)
    return found


def list_videos(con: Connection, owner: str, page: Page) -> tuple[list[Operation], bool]:
    """A page of the owner's videos that were asked for in OpenAI's words, and whether more follow. `NotFound` when
    the page begins after none of them.
    """
    missing = _missing(page.after or "")
    seen = _OPERATIONS.position(con, page.after, missing, _VIDEO, owner)
    return _OPERATIONS.page(con, _VIDEO, [owner], page, seen)


def files_of(con: Connection, operation_id: str, owner: str) -> list[VideoFile]:
    """The videos of an operation."""
    return _FILES.select(
        con, "WHERE operation_id = ? AND owner = ? ORDER BY id", operation_id, owner
    )


def delete_video(con: Connection, video_id: str, owner: str) -> None:
    """Deletes a video that has ended, with its address, in the writer."""
    con.execute(
        "DELETE FROM video_operations WHERE id = ? AND owner = ? AND ended_at_ms IS NOT NULL",
        [video_id, owner],
    )
    con.execute(
        "DELETE FROM video_files WHERE operation_id NOT IN (SELECT id FROM video_operations)"
    )


def note_progress(con: Connection, operation_id: str, progress: int) -> None:
    """Notes how far a video is, in the writer."""
    con.execute(
        "UPDATE video_operations SET progress = ? WHERE id = ? AND ended_at_ms IS NULL",
        [progress, operation_id],
    )


def active_operations(con: Connection) -> list[Operation]:
    """The operations that have not ended, oldest first."""
    return _OPERATIONS.select(con, "WHERE ended_at_ms IS NULL ORDER BY created_at_ms, id")


def end_operation(
    con: Connection, operation: Operation, response: str | None, error: str | None, at_ms: int
) -> bool:
    """Stores the result; False where the operation has ended, has begun since, or is deleted."""
    row = con.execute(
        "UPDATE video_operations SET response = ?, error = ?, ended_at_ms = ? "
        "WHERE id = ? AND ended_at_ms IS NULL "
        "AND provider_operation = ? RETURNING 1",
        [response, error, at_ms, operation.id, operation.provider_operation],
    ).fetchone()
    return row is not None


def insert_file(con: Connection, file: VideoFile) -> None:
    """Adds a video's address."""
    _FILES.insert(con, file)


def find_video_file(con: Connection, file_id: str, owner: str) -> VideoFile | None:
    """The owner's video, or None."""
    return _FILES.find(con, "id = ? AND owner = ?", file_id, owner)


def take_old(con: Connection, now_ms: int) -> None:
    """Deletes operations that ended long ago or whose owner is deleted, and their files."""
    con.execute(
        "DELETE FROM video_operations WHERE ended_at_ms <= ? "
        "OR (ended_at_ms IS NOT NULL AND owner NOT IN (SELECT id FROM keys))",
        [now_ms - KEPT_MS],
    )
    con.execute(
        "DELETE FROM video_files WHERE operation_id NOT IN (SELECT id FROM video_operations)"
    )


def _missing(video_id: str) -> NotFound:
    return NotFound(f"There is no video {video_id[:64]}.", param="video_id")
