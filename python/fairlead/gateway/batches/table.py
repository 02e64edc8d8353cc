"""The rows of batches. Every function runs inside `state.read` or `state.database.write`.

validating -> in_progress -> finalizing -> completed
    |              |-> finalizing -> expired
    |              `-> cancelling -> cancelled
    `-> failed     (cancelling may come from validating, too)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

import orjson

from fairlead.errors import Conflict, InvalidRequest, NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.table import Page, Table

ENDED: Final = ("failed", "completed", "expired", "cancelled")
WINDOW_MS: Final = 24 * 3_600_000
"""Time from a batch's creation to its expiry."""
ACTIVE_OF_OWNER_MAX: Final = 50
ACTIVE_MAX: Final = 500
OUTPUT_KEPT_S: Final = 30 * 86_400
"""Time for which the output of a batch is stored, unless its request says otherwise."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Lines of a batch: `completed` were answered with success, `failed` otherwise or not at all. `expired` of the
    failed ones were not sent, because the batch's time was over.
    """

    total: int = 0
    completed: int = 0
    failed: int = 0
    tokens_input: int = 0
    tokens_output: int = 0
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    expired: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """A row of a batch. `owner` is the key's id; `metadata` and `errors` are JSON texts; `dialect`
    is the API that created it and shows it: `openai`, `gemini` or `anthropic`. The requests and answers of
    a batch that `is_inline` are in the calls themselves; its files are internal. `betas` is the
    `anthropic-beta` header that is sent with each of its requests.
    """

    id: str
    owner: str
    endpoint: str
    input_file_id: str
    metadata: str | None
    output_expires_after_s: int | None
    status: str
    model: str | None
    errors: str | None
    output_file_id: str | None
    error_file_id: str | None
    total: int
    completed: int
    failed: int
    tokens_input: int
    tokens_output: int
    tokens_cached: int
    tokens_reasoning: int
    created_at_ms: int
    expires_at_ms: int
    in_progress_at_ms: int | None
    finalizing_at_ms: int | None
    cancelling_at_ms: int | None
    ended_at_ms: int | None
    dialect: str = "openai"
    display_name: str | None = None
    priority: int = 0
    is_inline: bool = False
    betas: str | None = None
    expired: int = 0


_BATCHES: Final = Table("batches", Batch)


def new_batch(created_at_ms: int, **requested: Any) -> Batch:
    """A batch that waits to be validated; `requested` are the fields that its request decides."""
    later: dict[str, Any] = dict.fromkeys(
        (
            "metadata",
            "output_expires_after_s",
            "model",
            "errors",
            "output_file_id",
            "error_file_id",
            "in_progress_at_ms",
            "finalizing_at_ms",
            "cancelling_at_ms",
            "ended_at_ms",
        )
    )
    counts = {field.name: 0 for field in fields(Counts)}
    return Batch(
        **{**later, **counts, **requested},
        status="validating",
        created_at_ms=created_at_ms,
        expires_at_ms=created_at_ms + WINDOW_MS,
    )


def insert_batch(con: Connection, batch: Batch) -> None:
    """Adds a batch. Raises `RateLimited` if the owner, or the gateway, has reached its maximum in progress."""
    own, all_ = con.execute(
        "SELECT count(*) FILTER (WHERE owner = ?), count(*) FROM batches WHERE ended_at_ms IS NULL",
        [batch.owner],
    ).fetchone() or (0, 0)
    if own >= ACTIVE_OF_OWNER_MAX or all_ >= ACTIVE_MAX:
        raise RateLimited(
            f"A key has at most {ACTIVE_OF_OWNER_MAX} batches in progress, the gateway {ACTIVE_MAX}: "
            "wait for one to end.",
            retry_after_s=60,
        )
    _BATCHES.insert(con, batch)


def find_batch(con: Connection, batch_id: str, owner: str | None = None) -> Batch:
    """The owner's batch; without an owner, anybody's. `NotFound` when there is none, or it is
    another owner's.
    """
    mine = "id = ? AND (?::VARCHAR IS NULL OR owner = ?)"
    found = _BATCHES.find(con, mine, batch_id, owner, owner)
    if found is None:
        raise NotFound(f"No such batch: {batch_id[:64]}.", param="id")
    return found


def find_batch_in(con: Connection, batch_id: str, owner: str, *dialects: str) -> Batch:
    """The owner's batch, of one of these APIs. `NotFound` when there is none, or it is another
    owner's.
    """
    batch = find_batch(con, batch_id, owner)
    if batch.dialect not in dialects:
        raise NotFound(f"No such batch: {batch_id[:64]}.", param="id")
    return batch


@dataclass(frozen=True, slots=True)
class BatchPage:
    """A page of batches of one API. It begins after the batch `beyond`, or with `is_backwards` ends in front of it."""

    dialect: str
    beyond: str | None
    limit: int
    is_backwards: bool = False


def list_batches(con: Connection, owner: str, page: BatchPage) -> tuple[list[Batch], bool]:
    """The page of the owner's batches, newest first, and whether there are more in its direction."""
    mine = "owner = ? AND dialect = ?"
    missing = InvalidRequest("after is not the id of a batch of yours.", param="after")
    seen = _BATCHES.position(con, page.beyond, missing, mine, owner, page.dialect)
    wanted = Page(page.beyond, page.limit, "asc" if page.is_backwards else "desc")
    found, has_more = _BATCHES.page(con, mine, [owner, page.dialect], wanted, seen)
    return found[::-1] if page.is_backwards else found, has_more


def active_batches(con: Connection) -> list[Batch]:
    """The batches that have not ended, in the order in which they are taken up: oldest first, and
    among the batches of one owner by their priority.
    """
    by_age = _BATCHES.select(con, "WHERE ended_at_ms IS NULL ORDER BY created_at_ms, id")
    preferred = _by_owner(sorted(by_age, key=lambda batch: -batch.priority))
    return [next(preferred[batch.owner]) for batch in by_age]


def delete_batch(con: Connection, batch_id: str, owner: str, dialect: str) -> Batch:
    """Deletes a batch of this API that has ended. `NotFound`, `Conflict`."""
    batch = find_batch_in(con, batch_id, owner, dialect)
    if batch.ended_at_ms is None:
        raise Conflict("The batch has not ended: cancel it, or wait for its end, then delete it.")
    con.execute("DELETE FROM batches WHERE id = ? AND owner = ?", [batch_id, owner])
    return batch


def delete_completed(con: Connection, owner: str, limit: int) -> tuple[list[str], bool]:
    """Deletes the owner's batches in OpenAI's dialect that are completed, oldest first, at most
    `limit` of them: their ids, and whether there are more.
    """
    rows = con.execute(
        "SELECT id FROM batches WHERE owner = ? AND dialect = 'openai' AND status = 'completed' "
        "ORDER BY created_at_ms, id LIMIT ?",
        [owner, limit + 1],
    ).fetchall()
    ids = [str(row[0]) for row in rows[:limit]]
    con.execute("DELETE FROM batches WHERE id IN (SELECT unnest(?::VARCHAR[]))", [ids])
    return ids, len(rows) > limit


def delete_ownerless(con: Connection) -> None:
    """Deletes batches that have ended and whose key was deleted: nobody can read them any more."""
    con.execute(
        "DELETE FROM batches WHERE ended_at_ms IS NOT NULL AND owner NOT IN (SELECT id FROM keys)"
    )


def _by_owner(batches: list[Batch]) -> dict[str, Iterator[Batch]]:
    found: dict[str, list[Batch]] = {}
    for batch in batches:
        found.setdefault(batch.owner, []).append(batch)
    return {owner: iter(own) for owner, own in found.items()}


def change_batch(con: Connection, batch_id: str, **changes: Any) -> None:
    """Sets fields of a batch that has not ended."""
    if unknown := changes.keys() - set(_BATCHES.columns):
        raise ValueError(f"no columns: {unknown}")
    assignments = ", ".join(f"{name} = ?" for name in changes)
    con.execute(
        f"UPDATE batches SET {assignments} WHERE id = ? AND ended_at_ms IS NULL",
        [*changes.values(), batch_id],
    )


def count_batch(con: Connection, batch_id: str, counts: Counts) -> None:
    """Stores the counts of a batch's lines so far."""
    named = {field.name: getattr(counts, field.name) for field in fields(Counts)}
    change_batch(con, batch_id, **named)


def begin_cancel(con: Connection, batch_id: str, owner: str, now_ms: int) -> Batch:
    """Marks a batch as cancelling. `InvalidRequest` for one that has ended, which stays as it is."""
    batch = find_batch(con, batch_id, owner)
    if batch.ended_at_ms is not None or batch.status == "finalizing":
        raise InvalidRequest(f"A batch that is {batch.status} cannot be cancelled.")
    if batch.status != "cancelling":
        change_batch(con, batch_id, status="cancelling", cancelling_at_ms=now_ms)
    return find_batch(con, batch_id, owner)


def batch_view(batch: Batch) -> dict[str, Any]:
    """A batch as OpenAI shows it."""

    def seconds(ms: int | None) -> int | None:
        return None if ms is None else ms // 1000

    def ended(status: str) -> int | None:
        return seconds(batch.ended_at_ms) if batch.status == status else None

    has_files = batch.ended_at_ms is not None
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "model": batch.model,
        "errors": orjson.loads(batch.errors) if batch.errors else None,
        "input_file_id": batch.input_file_id,
        "completion_window": "24h",
        "status": batch.status,
        "output_file_id": batch.output_file_id if has_files else None,
        "error_file_id": batch.error_file_id if has_files else None,
        "created_at": seconds(batch.created_at_ms),
        "in_progress_at": seconds(batch.in_progress_at_ms),
        "expires_at": seconds(batch.expires_at_ms),
        "finalizing_at": seconds(batch.finalizing_at_ms),
        "completed_at": ended("completed"),
        "failed_at": ended("failed"),
        "expired_at": ended("expired"),
        "cancelling_at": seconds(batch.cancelling_at_ms),
        "cancelled_at": ended("cancelled"),
        "request_counts": {
            "total": batch.total,
            "completed": batch.completed,
            "failed": batch.failed,
        },
        "usage": {
            "input_tokens": batch.tokens_input,
            "input_tokens_details": {"cached_tokens": batch.tokens_cached},
            "output_tokens": batch.tokens_output,
            "output_tokens_details": {"reasoning_tokens": batch.tokens_reasoning},
            "total_tokens": batch.tokens_input + batch.tokens_output,
        },
        "metadata": orjson.loads(batch.metadata) if batch.metadata else None,
    }
