"""The rows of saved calls, by owner, kind and slug."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import uuid4

import orjson

from fairlead.errors import Conflict
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, claim_bytes
from fairlead.store.table import Table

Kind = Literal["endpoint", "site"]

SAVED_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class SavedCall:
    """A saved call. `definition` is the request that saved it, `last_run` how a site's last run went."""

    id: str
    owner: str
    kind: Kind
    slug: str
    definition: dict[str, Any]
    created_at_ms: int
    last_run: dict[str, Any] | None = None


_SAVED: Final = Table("scrape_endpoints", SavedCall, json={"definition": dict, "last_run": dict})


def new_saved(owner: str, kind: Kind, slug: str, definition: dict[str, Any]) -> SavedCall:
    """A saved call with a new id, not stored yet."""
    return SavedCall(str(uuid4()), owner, kind, slug, definition, now_ms())


def insert_saved(con: Connection, saved: SavedCall, *, named: str) -> None:
    """Stores a saved call, in the writer. `Conflict` where the slug, which callers know as `named`, is taken, or
    there are too many.
    """
    count, taken = con.execute(
        "SELECT count(*), count(*) FILTER (WHERE slug = ?) FROM scrape_endpoints WHERE owner = ? AND kind = ?",
        [saved.slug, saved.owner, saved.kind],
    ).fetchone() or (0, 0)
    if taken:
        raise Conflict(
            f"This {named} is taken: send another, or delete the {saved.kind} that has it.",
            param=named,
        )
    if count >= SAVED_MAX:
        raise Conflict(f"A key has at most {SAVED_MAX} saved {saved.kind}s: delete some first.")
    claim_bytes(con, DATABASE, saved.owner, len(orjson.dumps(saved.definition)))
    _SAVED.insert(con, saved)


def list_saved(con: Connection, kind: Kind, owner: str) -> list[SavedCall]:
    """An owner's saved calls, by slug."""
    return _SAVED.select(con, "WHERE owner = ? AND kind = ? ORDER BY slug", owner, kind)


def find_saved(
    con: Connection, kind: Kind, owner: str, *, slug: str | None = None, saved_id: str | None = None
) -> SavedCall | None:
    """The owner's saved call with this slug or this id, if there is one."""
    mine = "owner = ? AND kind = ? AND (slug = ? OR id = ?)"
    return _SAVED.find(con, mine, owner, kind, slug, saved_id)


def delete_saved(con: Connection, saved: SavedCall) -> None:
    """Deletes a saved call, in the writer."""
    con.execute("DELETE FROM scrape_endpoints WHERE id = ?", [saved.id])


def record_run(con: Connection, saved_id: str, run: dict[str, Any]) -> None:
    """Stores how the last run went, in the writer."""
    con.execute(
        "UPDATE scrape_endpoints SET last_run = ? WHERE id = ?",
        [orjson.dumps(run).decode(), saved_id],
    )
