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

Kind = Literal["endpoint", "site"]

SAVED_MAX: Final = 500

_COLUMNS: Final = "id, owner, kind, slug, definition, created_at_ms, last_run"


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
    definition = orjson.dumps(saved.definition)
    claim_bytes(con, DATABASE, saved.owner, len(definition))
    con.execute(
        f"INSERT INTO scrape_endpoints ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, NULL)",
        [
            saved.id,
            saved.owner,
            saved.kind,
            saved.slug,
            definition.decode(),
            saved.created_at_ms,
        ],
    )


def list_saved(con: Connection, kind: Kind, owner: str) -> list[SavedCall]:
    """An owner's saved calls, by slug."""
    rows = con.execute(
        f"SELECT {_COLUMNS} FROM scrape_endpoints WHERE owner = ? AND kind = ? ORDER BY slug",
        [owner, kind],
    ).fetchall()
    return [_saved(row) for row in rows]


def find_saved(
    con: Connection, kind: Kind, owner: str, *, slug: str | None = None, saved_id: str | None = None
) -> SavedCall | None:
    """The owner's saved call with this slug or this id, if there is one."""
    row = con.execute(
        f"SELECT {_COLUMNS} FROM scrape_endpoints WHERE owner = ? AND kind = ? AND (slug = ? OR id = ?)",
        [owner, kind, slug, saved_id],
    ).fetchone()
    return None if row is None else _saved(row)


def delete_saved(con: Connection, saved: SavedCall) -> None:
    """Deletes a saved call, in the writer."""
    con.execute("DELETE FROM scrape_endpoints WHERE id = ?", [saved.id])


def record_run(con: Connection, saved_id: str, run: dict[str, Any]) -> None:
    """Stores how the last run went, in the writer."""
    con.execute(
        "UPDATE scrape_endpoints SET last_run = ? WHERE id = ?",
        [orjson.dumps(run).decode(), saved_id],
    )


def _saved(row: tuple[Any, ...]) -> SavedCall:
    last_run = orjson.loads(row[6]) if row[6] is not None else None
    return SavedCall(row[0], row[1], row[2], row[3], orjson.loads(row[4]), row[5], last_run)
