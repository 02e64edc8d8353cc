"""The table `provider_nodes`: one row per node, header values sealed."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import orjson
import structlog

from fairlead.store.file import Connection

log = structlog.get_logger("fairlead.gateway")

_COLUMNS = (
    "id",
    "type",
    "name",
    "prefix",
    "api_type",
    "base_url",
    "chat_path",
    "models_path",
    "icon_url",
    "headers_sealed",
    "header_names",
    "timeouts",
    "created_at_ms",
    "updated_at_ms",
)

# Built from the constants above: nothing that a caller sends becomes part of the statement.
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM provider_nodes"
_INSERT = (
    f"INSERT INTO provider_nodes ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
)
_UPDATE = f"UPDATE provider_nodes SET {', '.join(f'{c} = ?' for c in _COLUMNS[1:])} WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Node:
    """A row of the table. `headers_sealed` opens with the node's id to a JSON object; `timeouts`
    holds the timeouts that are set.
    """

    id: str
    type: str
    name: str
    prefix: str
    api_type: str
    base_url: str
    chat_path: str | None
    models_path: str | None
    icon_url: str | None
    headers_sealed: bytes | None
    header_names: tuple[str, ...]
    timeouts: dict[str, int]
    created_at_ms: int
    updated_at_ms: int


def insert_node(con: Connection, node: Node) -> None:
    """Adds a node, in the writer."""
    con.execute(_INSERT, _written(node))


def update_node(con: Connection, node: Node) -> None:
    """Replaces a node's row, in the writer."""
    con.execute(_UPDATE, [*_written(node)[1:], node.id])


def delete_node(con: Connection, node_id: str) -> None:
    """Removes a node, in the writer."""
    con.execute("DELETE FROM provider_nodes WHERE id = ?", [node_id])


def find_node(con: Connection, node_id: str) -> Node | None:
    """The node with this id."""
    row = con.execute(f"{_SELECT} WHERE id = ?", [node_id]).fetchone()
    return None if row is None else _read(row)


def find_node_by_name(con: Connection, text: str) -> Node | None:
    """The node that has this id or prefix."""
    row = con.execute(f"{_SELECT} WHERE id = ? OR prefix = ?", [text, text]).fetchone()
    return None if row is None else _read(row)


def list_nodes(con: Connection, limit: int, offset: int) -> list[Node]:
    """Nodes in the order of their making."""
    rows = con.execute(
        f"{_SELECT} ORDER BY created_at_ms, id LIMIT ? OFFSET ?", [limit, offset]
    ).fetchall()
    return [_read(row) for row in rows]


def all_nodes(con: Connection) -> dict[str, Node]:
    """Every node that can be read, by its id; one that cannot is logged."""
    nodes: dict[str, Node] = {}
    for row in con.execute(_SELECT).fetchall():
        try:
            nodes[row[0]] = _read(row)
        except (ValueError, TypeError) as error:
            log.error("a provider node cannot be read", id=row[0], error=type(error).__name__)
    return nodes


def count_nodes(con: Connection) -> int:
    """How many nodes there are."""
    row = con.execute("SELECT count(*) FROM provider_nodes").fetchone()
    return int(row[0]) if row else 0


def _written(node: Node) -> list[Any]:
    values = dict(zip(_COLUMNS, astuple(node), strict=True))
    values["header_names"] = orjson.dumps(node.header_names).decode()
    values["timeouts"] = orjson.dumps(node.timeouts).decode()
    return list(values.values())


def _read(row: tuple[Any, ...]) -> Node:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["header_names"] = tuple(orjson.loads(values["header_names"]))
    values["timeouts"] = orjson.loads(values["timeouts"])
    return Node(**values)
