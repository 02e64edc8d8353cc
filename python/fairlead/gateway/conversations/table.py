"""The rows of conversations and of their items. Every function runs inside `state.read` or in the writer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from fairlead.errors import InvalidRequest, NotFound, RateLimited, TooLarge
from fairlead.gateway.files.contents import new_id
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, claim_bytes
from fairlead.store.table import Page, Table, read_number

OWNER_MAX: Final = 10_000
ITEMS_MAX: Final = 10_000
"""Items of one conversation, which is as many as a request may have."""
CONTEXT_MAX_BYTES: Final = 24 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Conversation:
    """A row of a conversation. `owner` is the caller's kind and id, `metadata` a JSON object. Its next item gets
    `next_position`.
    """

    id: str
    owner: str
    metadata: str
    next_position: int
    created_at_ms: int


_CONVERSATIONS: Final = Table("conversations", Conversation)


def insert_conversation(con: Connection, conversation: Conversation) -> None:
    """Adds a conversation. `RateLimited` when the owner has as many as allowed."""
    forget_unowned(con)
    if _CONVERSATIONS.count(con, "owner = ?", conversation.owner) >= OWNER_MAX:
        raise RateLimited(f"A key has at most {OWNER_MAX} conversations: delete some.")
    _CONVERSATIONS.insert(con, conversation)


def find_conversation(con: Connection, conversation_id: str, owner: str) -> Conversation:
    """The owner's conversation. `NotFound` when there is none, or it is another owner's."""
    found = _CONVERSATIONS.find(con, "id = ? AND owner = ?", conversation_id, owner)
    if found is None:
        raise NotFound(f"No such conversation: {conversation_id[:100]}.", param="conversation_id")
    return found


def change_metadata(
    con: Connection, conversation_id: str, owner: str, metadata: str
) -> Conversation:
    """Replaces the metadata. `NotFound`."""
    found = find_conversation(con, conversation_id, owner)
    con.execute("UPDATE conversations SET metadata = ? WHERE id = ?", [metadata, found.id])
    return replace(found, metadata=metadata)


def delete_conversation(con: Connection, conversation_id: str, owner: str) -> None:
    """Deletes a conversation with its items. `NotFound`."""
    find_conversation(con, conversation_id, owner)
    con.execute("DELETE FROM conversation_items WHERE conversation_id = ?", [conversation_id])
    con.execute("DELETE FROM conversations WHERE id = ?", [conversation_id])


def forget_unowned(con: Connection) -> None:
    """Deletes the conversations of keys that were deleted."""
    gone = "owner LIKE 'key:%' AND substring(owner, 5) NOT IN (SELECT id FROM keys)"
    con.execute(f"DELETE FROM conversation_items WHERE {gone}")
    con.execute(f"DELETE FROM conversations WHERE {gone}")


def append_items(
    con: Connection, conversation_id: str, owner: str, items: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Adds items behind the others, and returns them as they are stored: an id that the conversation has already is
    replaced. `NotFound`, `TooLarge`, `OwnerStorageFull`, `StorageFull`.
    """
    find_conversation(con, conversation_id, owner)
    if not items:
        return []
    # The row that is changed keeps two writers from the same positions.
    (behind,) = con.execute(
        "UPDATE conversations SET next_position = next_position + ? WHERE id = ? RETURNING next_position",
        [len(items), conversation_id],
    ).fetchone() or (0,)
    known = {
        str(row[0])
        for row in con.execute(
            "SELECT id FROM conversation_items WHERE conversation_id = ?", [conversation_id]
        ).fetchall()
    }
    if len(known) + len(items) > ITEMS_MAX:
        raise TooLarge(f"A conversation has at most {ITEMS_MAX} items: delete some.")
    stored = []
    for item in items:
        unique = item if item["id"] not in known else {**item, "id": new_id("item_")}
        known.add(unique["id"])
        stored.append(unique)
    texts = [orjson.dumps(item) for item in stored]
    claim_bytes(con, DATABASE, owner, sum(map(len, texts)))
    first = behind - len(items)
    con.executemany(
        "INSERT INTO conversation_items VALUES (?, ?, ?, ?, ?, ?)",
        [
            [conversation_id, owner, first + at, item["id"], text.decode(), len(text)]
            for at, (item, text) in enumerate(zip(stored, texts, strict=True))
        ],
    )
    return stored


def list_items(
    con: Connection, conversation_id: str, owner: str, page: Page
) -> tuple[list[str], bool]:
    """The items of a page as JSON, and whether there are more. `NotFound`."""
    find_conversation(con, conversation_id, owner)
    where, bound = "conversation_id = ?", [conversation_id]
    if page.after is not None:
        seen = con.execute(
            f"SELECT position FROM conversation_items WHERE {where} AND id = ?",
            [*bound, page.after],
        ).fetchone()
        if seen is None:
            raise InvalidRequest("after must be the id of an item.", param="after")
        side = ">" if page.order == "asc" else "<"
        where, bound = f"{where} AND position {side} ?", [*bound, seen[0]]
    way = "ASC" if page.order == "asc" else "DESC"
    rows = con.execute(
        f"SELECT item FROM conversation_items WHERE {where} ORDER BY position {way} LIMIT ?",
        [*bound, page.limit + 1],
    ).fetchall()
    return [str(row[0]) for row in rows[: page.limit]], len(rows) > page.limit


def find_item(con: Connection, conversation_id: str, item_id: str, owner: str) -> str:
    """An item as JSON. `NotFound`."""
    find_conversation(con, conversation_id, owner)
    row = con.execute(
        "SELECT item FROM conversation_items WHERE conversation_id = ? AND id = ?",
        [conversation_id, item_id],
    ).fetchone()
    if row is None:
        raise NotFound(f"No such item: {item_id[:100]}.", param="item_id")
    return str(row[0])


def delete_item(con: Connection, conversation_id: str, item_id: str, owner: str) -> Conversation:
    """Deletes an item and returns its conversation. `NotFound`."""
    find_item(con, conversation_id, item_id, owner)
    con.execute(
        "DELETE FROM conversation_items WHERE conversation_id = ? AND id = ?",
        [conversation_id, item_id],
    )
    return find_conversation(con, conversation_id, owner)


def items_of(con: Connection, conversation_id: str, owner: str) -> list[str]:
    """All items as JSON, in their order. `NotFound`; `TooLarge` when they are more than a request may have."""
    find_conversation(con, conversation_id, owner)
    size = "SELECT coalesce(sum(size_bytes), 0)::BIGINT FROM conversation_items WHERE conversation_id = ?"
    if read_number(con, size, [conversation_id]) > CONTEXT_MAX_BYTES:
        raise TooLarge("The conversation is too long to be continued: delete some of its items.")
    rows = con.execute(
        "SELECT item FROM conversation_items WHERE conversation_id = ? ORDER BY position",
        [conversation_id],
    ).fetchall()
    return [str(row[0]) for row in rows]
