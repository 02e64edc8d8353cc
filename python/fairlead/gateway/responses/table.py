"""The table `responses`: one row per stored response."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from fairlead.errors import Conflict, NotFound, OwnerStorageFull, StorageFull, TooLarge
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, add_bytes, claim_bytes
from fairlead.store.statement import unnested

RETENTION_MS = 30 * 24 * 3_600_000
"""Time after which a response is deleted."""
MAX_KEPT = 10_000
"""Responses of one owner; the sweep deletes the oldest beyond this."""
MAX_TURNS = 1_000
MAX_CONTEXT_BYTES = 24 * 1024 * 1024

log = structlog.get_logger("fairlead.gateway")


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A row of the table. `input` is a JSON list, `response` a JSON object."""

    id: str
    owner: str
    previous_id: str | None
    model: str
    input: str
    response: str


def insert_response(
    con: Connection, response: StoredResponse, now_ms: int, *, is_open: bool = False
) -> None:
    """Stores a response, in the writer.

    A response that the owner has already under this id stays as it is. `Conflict` where the id
    belongs to another owner, `OwnerStorageFull` and Raises `StorageFull` at the limit. With
    `is_open` its answer comes later, by `store_answer`.
    """
    found = con.execute("SELECT owner FROM responses WHERE id = ?", [response.id]).fetchone()
    if found is not None:
        if found[0] != response.owner:
            raise Conflict("A response with this id belongs to another caller.")
        return
    size = _size(response.input, response.response)
    claim_bytes(con, DATABASE, response.owner, size)
    con.execute(
        "INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            response.id,
            response.owner,
            response.previous_id,
            response.model,
            response.input,
            response.response,
            size,
            now_ms,
            now_ms + RETENTION_MS,
            is_open,
        ],
    )


_COLUMNS = ("id", "owner", "previous_id", "model", "input", "response", "created_at_ms")
_INSERT = f"""
INSERT INTO responses ({", ".join(_COLUMNS)}, size_bytes, expires_at_ms, is_open)
SELECT {", ".join(_COLUMNS)}, strlen(input) + strlen(response), created_at_ms + ?, false
FROM (SELECT {", ".join(f"{unnested([column])} AS {column}" for column in _COLUMNS)}) AS finished
"""


def insert_responses(con: Connection, responses: Sequence[tuple[StoredResponse, int]]) -> None:
    """Stores finished responses, each with the time of its answer, in the writer.

    A response whose id is stored already stays as it is. These responses were answered as stored, so the limits of
    their owners' bytes do not refuse them: `claim_bytes` refuses the ones after them.
    """
    ids = list({response.id for response, _ in responses})
    owners: dict[str, str] = dict(
        con.execute(
            "SELECT id, owner FROM responses WHERE id IN (SELECT unnest(?::VARCHAR[]))", [ids]
        ).fetchall()
    )
    fresh: list[tuple[StoredResponse, int]] = []
    sizes: defaultdict[str, int] = defaultdict(int)
    for response, at_ms in responses:
        owner = owners.setdefault(response.id, "")
        if not owner:
            owners[response.id] = response.owner
            fresh.append((response, at_ms))
            sizes[response.owner] += _size(response.input, response.response)
        elif owner != response.owner:
            log.warning("a response is not stored: its id is another caller's", id=response.id)
    if not fresh:
        return
    columns = zip(
        *(
            (one.id, one.owner, one.previous_id, one.model, one.input, one.response, at_ms)
            for one, at_ms in fresh
        ),
        strict=True,
    )
    con.execute(_INSERT, [RETENTION_MS, *map(list, columns)])
    add_bytes(con, DATABASE, sizes)


def sweep_responses(con: Connection, now_ms: int) -> None:
    """Deletes expired responses, and the oldest of owners who have too many, in the writer."""
    con.execute("DELETE FROM responses WHERE expires_at_ms <= ?", [now_ms])
    crowded = con.execute(
        "SELECT owner FROM responses GROUP BY owner HAVING count(*) > ?", [MAX_KEPT]
    ).fetchall()
    for (owner,) in crowded:
        con.execute(
            "DELETE FROM responses WHERE owner = ? AND id NOT IN "
            "(SELECT id FROM responses WHERE owner = ? ORDER BY created_at_ms DESC, id LIMIT ?)",
            [owner, owner, MAX_KEPT],
        )
    con.execute("DELETE FROM response_events WHERE response_id NOT IN (SELECT id FROM responses)")


def store_answer(con: Connection, response_id: str, response: str, events: str) -> None:
    """Stores the answer of an open response and its events, in the writer; does nothing when the
    response was deleted meanwhile.
    """
    open_now = "id = ? AND is_open"
    found = con.execute(
        f"SELECT owner, strlen(response) FROM responses WHERE {open_now}", [response_id]
    ).fetchone()
    if found is None:
        return
    owner, envelope_bytes = found
    more = _size(response) - envelope_bytes
    try:
        claim_bytes(con, DATABASE, owner, max(more + _size(events), 0))
        more += _size(events)
    except (OwnerStorageFull, StorageFull):
        # The answer was paid for, so it is stored without its events; readers get a short form of
        # them.
        events = ""
    con.execute(
        "UPDATE responses SET response = ?, is_open = false, "
        f"size_bytes = size_bytes + ? WHERE {open_now}",
        [response, more, response_id],
    )
    if events:
        con.execute("INSERT INTO response_events VALUES (?, ?)", [response_id, events])


def open_ids(con: Connection) -> list[str]:
    """The ids of responses whose answer has not been stored."""
    rows = con.execute("SELECT id FROM responses WHERE is_open ORDER BY id").fetchall()
    return [str(row[0]) for row in rows]


def open_envelope(con: Connection, response_id: str) -> str | None:
    """The stored object of a response whose answer has not been stored; None when there is none."""
    row = con.execute(
        "SELECT response FROM responses WHERE id = ? AND is_open", [response_id]
    ).fetchone()
    return None if row is None else str(row[0])


def events_of(con: Connection, response_id: str) -> str | None:
    """The stored events of a background response, as a JSON list; None when there are none."""
    row = con.execute(
        "SELECT events FROM response_events WHERE response_id = ?", [response_id]
    ).fetchone()
    return None if row is None else str(row[0])


def find_response(con: Connection, response_id: str, owner: str, now_ms: int) -> StoredResponse:
    """A response of this owner. `NotFound` when there is none, or it is another owner's."""
    row = con.execute(
        "SELECT id, owner, previous_id, model, input, response FROM responses "
        "WHERE id = ? AND owner = ? AND expires_at_ms > ?",
        [response_id, owner, now_ms],
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no response `{response_id[:100]}`.")
    return StoredResponse(*row)


def delete_response(con: Connection, response_id: str, owner: str, now_ms: int) -> None:
    """Deletes a response of this owner, in the writer. `NotFound`."""
    find_response(con, response_id, owner, now_ms)
    con.execute("DELETE FROM responses WHERE id = ?", [response_id])
    con.execute("DELETE FROM response_events WHERE response_id = ?", [response_id])


def _is_open(con: Connection, response_id: str) -> bool:
    row = con.execute("SELECT is_open FROM responses WHERE id = ?", [response_id]).fetchone()
    return row is not None and bool(row[0])


def conversation(
    con: Connection, response_id: str, owner: str, now_ms: int
) -> list[StoredResponse]:
    """The response and all those that it continues, the first one first. `NotFound`, `TooLarge`;
    `Conflict` when its answer has not been stored yet.
    """
    turns: list[StoredResponse] = []
    size = 0
    following: str | None = response_id
    while following is not None:
        response = find_response(con, following, owner, now_ms)
        if following == response_id and _is_open(con, response_id):
            raise Conflict(f"The response `{response_id[:100]}` is still worked on.")
        size += len(response.input) + len(response.response)
        if len(turns) >= MAX_TURNS or size > MAX_CONTEXT_BYTES:
            raise TooLarge(
                "The conversation behind `previous_response_id` is too long to continue."
            )
        turns.append(response)
        following = response.previous_id
    return turns[::-1]


def _size(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts)
