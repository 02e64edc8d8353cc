"""The names of a provider: the id under which it is stored, and the prefix that callers write before its models.

A provider of the catalogue has one name for both. A node has an id that nobody remembers, and a prefix.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fairlead.errors import InvalidRequest
from fairlead.store.file import Connection

_CATALOGUE = Path(__file__).parents[1] / "data" / "catalogue"


def find_provider_id(con: Connection, name: str) -> str | None:
    """The id of the provider that a catalogue id, a node's id or a node's prefix names; also of one that has a
    connection and is in no catalogue any more.
    """
    if name in catalogue_ids():
        return name
    row = con.execute(
        "SELECT id FROM provider_nodes WHERE prefix = ? OR id = ? "
        "UNION ALL SELECT provider FROM provider_connections WHERE provider = ? LIMIT 1",
        [name, name, name],
    ).fetchone()
    return None if row is None else str(row[0])


def provider_id(con: Connection, name: str, param: str = "provider") -> str:
    """Like `find_provider_id`, but raises `InvalidRequest` for an unknown name."""
    found = find_provider_id(con, name)
    if found is None:
        raise no_provider(name, param)
    return found


def no_provider(name: str, param: str = "provider") -> InvalidRequest:
    """The refusal of a name that no provider has."""
    return InvalidRequest(
        f"There is no provider `{name[:80]}`: send a catalogue id, a node's id or a node's prefix.",
        param=param,
    )


def prefixes(con: Connection) -> dict[str, str]:
    """The prefix of each node, by its id. For every other provider the id is the prefix."""
    rows = con.execute("SELECT id, prefix FROM provider_nodes").fetchall()
    return {str(row[0]): str(row[1]) for row in rows}


@cache
def catalogue_ids() -> frozenset[str]:
    """The ids of the providers that ship with fairlead: one file each."""
    return frozenset(path.stem for path in _CATALOGUE.glob("*.json"))
