"""The table `responses`: one row per response that is kept."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.errors import Conflict, NotFound, OwnerStorageFull, StorageFull, TooLarge
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, claim_bytes

KEPT_MS = 30 * 24 * 3_600_000
"""What nobody deletes is gone after 30 days."""
MAX_KEPT = 10_000
"""The oldest of an owner goes when a new one would be one too many."""
MAX_TURNS = 1_000
MAX_CONTEXT_BYTES = 24 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """`input` is a JSON list, `response` a JSON object."""

    id: str
    owner: str
    previous_id: str | None
    model: str
    input: str
    response: str


def keep(con: Connection, kept: Kept, now_ms: int, *, is_open: bool = False) -> None:
    """Adds a response, in the writer. One that its owner keeps already under this id stays as it is;
    `Conflict` where it is another's: whoever asked for it would be told that it is kept, and never find
    it. `OwnerStorageFull`, `StorageFull`. `is_open`: its answer is still to come, by `close`.
    """
    con.execute("DELETE FROM responses WHERE expires_at_ms <= ?", [now_ms])
    found = con.execute("SELECT owner FROM responses WHERE id = ?", [kept.id]).fetchone()
    if found is not None:
        if found[0] != kept.owner:
            raise Conflict("A response of this id is kept for another caller.")
        return
    size = _size(kept.input, kept.response)
    claim_bytes(con, DATABASE, kept.owner, size)
    con.execute(
        "DELETE FROM responses WHERE owner = ? AND id NOT IN "
        "(SELECT id FROM responses WHERE owner = ? ORDER BY created_at_ms DESC, id LIMIT ?)",
        [kept.owner, kept.owner, MAX_KEPT - 1],
    )
    con.execute(
        "INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            kept.id,
            kept.owner,
            kept.previous_id,
            kept.model,
            kept.input,
            kept.response,
            size,
            now_ms,
            now_ms + KEPT_MS,
            is_open,
        ],
    )


def close(con: Connection, response_id: str, response: str, events: str) -> None:
    """The answer of an open response and what was told of it, in the writer; nothing where it was
    deleted meanwhile.
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
        # The answer was paid for: it is kept, and what was told on the way to it is told in short.
        events = ""
    con.execute(
        "UPDATE responses SET response = ?, is_open = false, "
        f"size_bytes = size_bytes + ? WHERE {open_now}",
        [response, more, response_id],
    )
    if events:
        con.execute("INSERT INTO response_events VALUES (?, ?)", [response_id, events])
    con.execute("DELETE FROM response_events WHERE response_id NOT IN (SELECT id FROM responses)")


def open_ids(con: Connection) -> list[str]:
    """Those whose answer never came."""
    rows = con.execute("SELECT id FROM responses WHERE is_open ORDER BY id").fetchall()
    return [str(row[0]) for row in rows]


def open_envelope(con: Connection, response_id: str) -> str | None:
    """What is known of one whose answer never came; None when it is gone."""
    row = con.execute(
        "SELECT response FROM responses WHERE id = ? AND is_open", [response_id]
    ).fetchone()
    return None if row is None else str(row[0])


def events_of(con: Connection, response_id: str) -> str | None:
    """What was told of a response that was worked on in the background, as a JSON list."""
    row = con.execute(
        "SELECT events FROM response_events WHERE response_id = ?", [response_id]
    ).fetchone()
    return None if row is None else str(row[0])


def find(con: Connection, response_id: str, owner: str, now_ms: int) -> Kept:
    """A response of this owner. `NotFound`, whether it is another's or nobody's."""
    row = con.execute(
        "SELECT id, owner, previous_id, model, input, response FROM responses "
        "WHERE id = ? AND owner = ? AND expires_at_ms > ?",
        [response_id, owner, now_ms],
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no response `{response_id[:100]}`.")
    return Kept(*row)


def forget(con: Connection, response_id: str, owner: str, now_ms: int) -> None:
    """Removes a response of this owner, in the writer. `NotFound`."""
    find(con, response_id, owner, now_ms)
    con.execute("DELETE FROM responses WHERE id = ?", [response_id])
    con.execute("DELETE FROM response_events WHERE response_id = ?", [response_id])


def _is_open(con: Connection, response_id: str) -> bool:
    row = con.execute("SELECT is_open FROM responses WHERE id = ?", [response_id]).fetchone()
    return row is not None and bool(row[0])


def conversation(con: Connection, response_id: str, owner: str, now_ms: int) -> list[Kept]:
    """The response and all that it goes on from, the first one first. `NotFound`, `TooLarge`;
    `Conflict` for one whose answer is still to come.
    """
    turns: list[Kept] = []
    size = 0
    following: str | None = response_id
    while following is not None:
        kept = find(con, following, owner, now_ms)
        if following == response_id and _is_open(con, response_id):
            raise Conflict(f"The response `{response_id[:100]}` is still worked on.")
        size += len(kept.input) + len(kept.response)
        if len(turns) >= MAX_TURNS or size > MAX_CONTEXT_BYTES:
            raise TooLarge("The conversation behind `previous_response_id` is too long to go on.")
        turns.append(kept)
        following = kept.previous_id
    return turns[::-1]


def _size(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts)
