"""Deliveries in the history: listing them, and sending them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.store.file import Connection
from fairlead.store.ordered_id import ordered_id
from fairlead.store.outbox import DELIVERY_WINDOW_MS, PENDING_MAX
from fairlead.store.table import read_number
from fairlead.webhooks.attempt import Answer

REDELIVERED_AT_MOST: Final = 10_000

_COLUMNS = (
    "id",
    "message_id",
    "event",
    "state",
    "attempts",
    "created_at_ms",
    "next_attempt_at_ms",
    "finished_at_ms",
    "status",
    "error",
    "latency_ms",
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message's delivery to one endpoint; `status`, `error` and `latency_ms` are of the last
    attempt.
    """

    id: str
    message_id: str
    event: str
    state: str
    attempts: int
    created_at_ms: int
    next_attempt_at_ms: int
    finished_at_ms: int | None
    status: int | None
    error: str | None
    latency_ms: float | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a delivery."""

    delivery_id: str
    number: int
    at_ms: int
    latency_ms: float
    status: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class PageCursor:
    """A delivery's place in the history: when it was queued (UTC milliseconds), and its id."""

    created_at_ms: int
    delivery_id: str


@dataclass(frozen=True, slots=True)
class Page:
    """At most `limit` deliveries: those that follow the one at `after`, or else all but the first `offset`."""

    limit: int
    offset: int = 0
    after: PageCursor | None = None


def list_deliveries(
    con: Connection, endpoint_id: str, state: str | None, page: Page
) -> tuple[list[Delivery], int]:
    """Deliveries of an endpoint, the newest first, and how many there are."""
    condition = "endpoint_id = $endpoint AND ($state::VARCHAR IS NULL OR state = $state)"
    values = {"endpoint": endpoint_id, "state": state}
    follows, place = "", {}
    if page.after is not None:
        follows = " AND (created_at_ms < $after_ms OR (created_at_ms = $after_ms AND id < $after))"
        place = {"after_ms": page.after.created_at_ms, "after": page.after.delivery_id}
    rows = con.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM webhook_deliveries WHERE {condition}{follows} "
        "ORDER BY created_at_ms DESC, id DESC LIMIT $limit OFFSET $offset",
        {
            **values,
            **place,
            "limit": page.limit,
            "offset": 0 if page.after else page.offset,
        },
    ).fetchall()
    total = read_number(con, f"SELECT count(*) FROM webhook_deliveries WHERE {condition}", values)
    return [Delivery(*row) for row in rows], total


def attempts_of(con: Connection, delivery_ids: Sequence[str]) -> dict[str, list[Attempt]]:
    """Attempts of deliveries, in their order."""
    rows = con.execute(
        "SELECT delivery_id, number, at_ms, latency_ms, status, error FROM webhook_attempts "
        "WHERE delivery_id IN (SELECT unnest(?::VARCHAR[])) ORDER BY delivery_id, at_ms, number",
        [list(delivery_ids)],
    ).fetchall()
    found: dict[str, list[Attempt]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(Attempt(*row))
    return found


def find_delivery(con: Connection, endpoint_id: str, delivery_id: str) -> Delivery | None:
    """The delivery of an endpoint with this id."""
    row = con.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM webhook_deliveries WHERE endpoint_id = ? AND id = ?",
        [endpoint_id, delivery_id],
    ).fetchone()
    return None if row is None else Delivery(*row)


def body_of(con: Connection, message_id: str) -> str | None:
    """The body of a message, as it was sent."""
    row = con.execute("SELECT body FROM webhook_messages WHERE id = ?", [message_id]).fetchone()
    return None if row is None else str(row[0])


def requeue(con: Connection, endpoint_id: str, delivery_ids: Sequence[str], at_ms: int) -> None:
    """Queues deliveries again, in the writer: the message and id stay, the 24 hours begin again."""
    con.execute(
        "UPDATE webhook_deliveries SET state = 'pending', tries = 0, next_attempt_at_ms = ?, "
        "expires_at_ms = ?, finished_at_ms = NULL "
        "WHERE endpoint_id = ? AND id IN (SELECT unnest(?::VARCHAR[]))",
        [at_ms, at_ms + DELIVERY_WINDOW_MS, endpoint_id, list(delivery_ids)],
    )


def deliveries_between(
    con: Connection, endpoint_id: str, state: str, from_ms: int, until_ms: int
) -> list[str]:
    """Ids of finished deliveries that were queued in a range, oldest first; one more than may be
    sent again at once.
    """
    rows = con.execute(
        "SELECT id FROM webhook_deliveries WHERE endpoint_id = ? AND state <> 'pending' "
        "AND (? = 'any' OR state = ?) AND created_at_ms >= ? AND created_at_ms < ? "
        "ORDER BY created_at_ms, id LIMIT ?",
        [endpoint_id, state, state, from_ms, until_ms, REDELIVERED_AT_MOST + 1],
    ).fetchall()
    return [str(row[0]) for row in rows]


def free_deliveries(con: Connection, endpoint_id: str) -> int:
    """The number of deliveries that may still be queued for an endpoint."""
    pending = "SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = ? AND state = 'pending'"
    return PENDING_MAX - read_number(con, pending, [endpoint_id])


def insert_tested(
    con: Connection,
    endpoint_id: str,
    message: tuple[str, str, str],
    answer: Answer,
    ended_at_ms: int,
) -> str:
    """Stores a finished test with its one attempt, in the writer; returns the delivery's id.
    `message` is id, event and body.
    """
    message_id, event, body = message
    delivery_id = ordered_id(answer.at_ms)
    state = "delivered" if answer.error is None else "failed"
    con.execute(
        "INSERT INTO webhook_messages VALUES (?, ?, ?, ?)", [message_id, event, body, answer.at_ms]
    )
    con.execute(
        "INSERT INTO webhook_deliveries VALUES (?, ?, ?, ?, ?, 1, 1, ?, ?, ?, ?, ?, ?, ?)",
        [
            delivery_id,
            endpoint_id,
            message_id,
            event,
            state,
            answer.at_ms,
            ended_at_ms,
            ended_at_ms,
            ended_at_ms,
            answer.status,
            answer.error,
            answer.latency_ms,
        ],
    )
    con.execute(
        "INSERT INTO webhook_attempts VALUES (?, ?, 1, ?, ?, ?, ?)",
        [
            delivery_id,
            endpoint_id,
            answer.at_ms,
            answer.latency_ms,
            answer.status,
            answer.error,
        ],
    )
    return delivery_id
