"""The transactional outbox of webhook events.

    def insert(con: Connection) -> None:
        insert_key(con, key)
        emit(con, Event("key.created", {"id": key.id, "name": key.name}))

    await state.commit(insert)

Events are stored in the transaction of the change that they report. A rollback drops them; after a commit each
subscribed endpoint gets them at least once, across crashes (`fairlead.webhooks` delivers). Receivers recognise
a repeated delivery by the message's id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from fairlead.events import CATALOGUE, EVERY, Surface
from fairlead.moment import iso, moment_of, now_ms
from fairlead.store.file import Connection
from fairlead.store.ordered_id import ordered_id
from fairlead.store.statement import unnested

DELIVERY_WINDOW_MS: Final = 24 * 3_600_000
BODY_MAX_BYTES: Final = 256 * 1024
# Pending deliveries per endpoint; any beyond that are recorded as failed at once.
PENDING_MAX: Final = 100_000
BACKLOG_FULL: Final = "backlog_full"

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DELIVERY_COLUMNS = (
    "id, endpoint_id, message_id, event, state, attempts, tries, created_at_ms, expires_at_ms, "
    "next_attempt_at_ms, finished_at_ms, error"
)


@dataclass(frozen=True, slots=True)
class Event:
    """An event to deliver, from `at_ms` on, for a day.

    `name` and the members of `data` are defined in `fairlead.events`. `members` go into the body beside `data`.
    Set `id` where the same event may be raised twice: only the first with an id counts.
    """

    name: str
    data: Mapping[str, Any]
    at_ms: int = field(default_factory=now_ms)
    members: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


def emit(
    con: Connection, *events: Event, surface: Surface = "gateway", owner: str | None = None
) -> int:
    """Queues the events for each enabled endpoint of the surface and owner that subscribes to them, in the
    writer.

    Returns the number of deliveries. `ValueError` for an event that is not in the catalogue, or whose body is
    too large.
    """
    for event in events:
        if event.name not in CATALOGUE[surface]:
            raise ValueError(f"{event.name} is no event of {surface} webhooks")
        if event.id is not None and _ID.fullmatch(event.id) is None:
            raise ValueError("a message's id is 1 to 64 letters, digits, _ and -")
    listeners = _listeners(con, surface, owner)
    if not listeners:
        return 0
    capacity = _capacity(con, [endpoint_id for endpoint_id, _ in listeners])
    known = _known(con, [event.id for event in events if event.id is not None])
    messages: list[tuple[str, str, str, int]] = []
    deliveries: list[tuple[Any, ...]] = []
    for event in events:
        takers = [each for each, names in listeners if event.name in names or EVERY in names]
        if not takers or event.id in known:
            continue
        message_id = event.id or f"msg_{ordered_id(event.at_ms)}"
        known.add(message_id)
        messages.append((message_id, event.name, _body(event), event.at_ms))
        for endpoint_id in takers:
            capacity[endpoint_id] -= 1
            deliveries.append(
                _delivery(event, message_id, endpoint_id, is_full=capacity[endpoint_id] < 0)
            )
    _insert(con, "webhook_messages", "id, event, body, created_at_ms", messages)
    _insert(con, "webhook_deliveries", _DELIVERY_COLUMNS, deliveries)
    return len(deliveries)


def have_listeners(
    con: Connection, *groups: Sequence[str], surface: Surface = "gateway"
) -> list[bool]:
    """Whether any endpoint subscribes to one of the events of each group; worth a check before many are built."""
    wanted = {name for _, events in _listeners(con, surface, None) for name in events}
    return [EVERY in wanted or not wanted.isdisjoint(names) for names in groups]


def _listeners(con: Connection, surface: Surface, owner: str | None) -> list[tuple[str, list[str]]]:
    return con.execute(
        "SELECT id, events FROM webhook_endpoints "
        "WHERE surface = ? AND owner IS NOT DISTINCT FROM ? AND state = 'enabled' ORDER BY id",
        [surface, owner],
    ).fetchall()


def _capacity(con: Connection, endpoint_ids: list[str]) -> dict[str, int]:
    waiting = con.execute(
        "SELECT endpoint_id, count(*) FROM webhook_deliveries WHERE state = 'pending' "
        "AND endpoint_id IN (SELECT unnest(?::VARCHAR[])) GROUP BY endpoint_id",
        [endpoint_ids],
    ).fetchall()
    return dict.fromkeys(endpoint_ids, PENDING_MAX) | {
        endpoint_id: PENDING_MAX - count for endpoint_id, count in waiting
    }


def _known(con: Connection, message_ids: list[str]) -> set[str]:
    if not message_ids:
        return set()
    rows = con.execute(
        "SELECT id FROM webhook_messages WHERE id IN (SELECT unnest(?::VARCHAR[]))", [message_ids]
    ).fetchall()
    return {str(row[0]) for row in rows}


def _body(event: Event) -> str:
    body = orjson.dumps(
        {
            "type": event.name,
            "timestamp": iso(moment_of(event.at_ms)),
            **event.members,
            "data": event.data,
        }
    )
    if len(body) > BODY_MAX_BYTES:
        raise ValueError(f"the body of {event.name} has more than {BODY_MAX_BYTES} bytes")
    return body.decode()


def _delivery(event: Event, message_id: str, endpoint_id: str, *, is_full: bool) -> tuple[Any, ...]:
    return (
        ordered_id(event.at_ms),
        endpoint_id,
        message_id,
        event.name,
        "failed" if is_full else "pending",
        0,
        0,
        event.at_ms,
        event.at_ms + DELIVERY_WINDOW_MS,
        event.at_ms,
        event.at_ms if is_full else None,
        BACKLOG_FULL if is_full else None,
    )


def _insert(con: Connection, table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    # One statement for any number of rows.
    values = [list(column) for column in zip(*rows, strict=True)]
    lists = unnested(columns.split(", "))
    con.execute(f"INSERT INTO {table} ({columns}) SELECT {lists}", values)
