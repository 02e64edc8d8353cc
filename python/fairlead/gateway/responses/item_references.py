"""Items of stored responses that a request names by their ids, as clients do that rely on `store`."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import orjson

from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.responses.intake import read_stored
from fairlead.gateway.responses.items import as_input
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import Services

REFERENCES_MAX: Final = 200
SEARCHED_MAX: Final = 1_000
"""The newest responses of the owner that may have an item."""


async def fill_items(services: Services, body: dict[str, Any], owner: str) -> bool:
    """Puts items of the owner's stored responses in place of the references to them; whether there were any. A
    reference to anything else stays.
    """
    items = body.get("input")
    if not isinstance(items, list):
        return False
    named = {at: id_ for at, item in enumerate(items) if (id_ := _named(item))}
    if not named:
        return False
    if len(named) > REFERENCES_MAX:
        raise InvalidRequest(f"A request names at most {REFERENCES_MAX} items.", param="input")
    found: dict[str, dict[str, Any]] = {}

    def read(con: Connection) -> None:
        for item_id in set(named.values()) - found.keys():
            item = _find_item(con, item_id, owner)
            if item is not None:
                found[item_id] = item
        if len(found) < len(set(named.values())):
            raise NotFound("An item is not stored.")

    # The response may just have been answered. If it is not stored after a while, the reference stays.
    with contextlib.suppress(NotFound):
        await read_stored(services, read)
    for at, item_id in named.items():
        if item_id in found:
            items[at] = found[item_id]
    return bool(found)


def _named(item: Any) -> str | None:
    """The id that a reference names: its type may be missing."""
    if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not item["id"]:
        return None
    kind = item.get("type")
    is_reference = kind == "item_reference" or (kind is None and "role" not in item)
    return item["id"] if is_reference else None


def _find_item(con: Connection, item_id: str, owner: str) -> dict[str, Any] | None:
    rows = con.execute(
        "SELECT response FROM (SELECT response, created_at_ms FROM responses WHERE owner = ? AND expires_at_ms > ? "
        "ORDER BY created_at_ms DESC LIMIT ?) AS newest WHERE strpos(response, ?) > 0 "
        "ORDER BY created_at_ms DESC LIMIT 5",
        [owner, now_ms(), SEARCHED_MAX, item_id],
    ).fetchall()
    for (response,) in rows:
        for item in orjson.loads(response).get("output") or []:
            if item.get("id") == item_id:
                return as_input(item)
    return None
