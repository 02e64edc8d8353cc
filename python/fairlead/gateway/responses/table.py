"""The table `responses`: one row per response that is kept."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.errors import Conflict, NotFound, TooLarge
from fairlead.store.file import Connection

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
    """Adds a response, in the writer; one of this id that is there already stays as it is. `is_open`:
    its answer is still to come, by `close`.
    """
    con.execute("DELETE FROM responses WHERE expires_at_ms <= ?", [now_ms])
    if con.execute("SELECT 1 FROM responses WHERE id = ?", [kept.id]).fetchone() is not None:
        return
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
            len(kept.input) + len(kept.response),
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
    if con.execute(f"SELECT 1 FROM responses WHERE {open_now}", [response_id]).fetchone() is None:
        return
    con.execute(
        "UPDATE responses SET response = ?, is_open = false, "
        f"size_bytes = length(input) + length(?) WHERE {open_now}",
        [response, response, response_id],
    )
    con.execute("INSERT INTO response_events VALUES (?, ?)", [response_id, events])
    con.execute("DELETE FROM response_events WHERE response_id NOT IN (SELECT id FROM responses)")


def open_ones(con: Connection) -> list[tuple[str, str]]:
    """Id and response of those whose answer never came."""
    return con.execute("SELECT id, response FROM responses WHERE is_open").fetchall()


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
