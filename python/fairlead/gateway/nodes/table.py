"""The table `provider_nodes`: one row per node, header values sealed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from fairlead.store.file import Connection
from fairlead.store.table import Table

log = structlog.get_logger("fairlead.gateway")


@dataclass(frozen=True, slots=True)
class Node:
    """A row of the table. `headers_sealed` opens with the node's id to a JSON object; `timeouts`
    holds the timeouts that are set, `stated` the fields of `StatedFacts` that are.
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
    stated: dict[str, Any] = field(default_factory=dict)


_NODES: Final = Table(
    "provider_nodes", Node, json={"header_names": tuple, "timeouts": dict, "stated": dict}
)


def insert_node(con: Connection, node: Node) -> None:
    """Adds a node, in the writer."""
    _NODES.insert(con, node)


def update_node(con: Connection, node: Node) -> None:
    """Replaces a node's row, in the writer."""
    _NODES.update(con, node)


def delete_node(con: Connection, node_id: str) -> None:
    """Removes a node, in the writer."""
    con.execute("DELETE FROM provider_nodes WHERE id = ?", [node_id])


def find_node(con: Connection, node_id: str) -> Node | None:
    """The node with this id."""
    return _NODES.find(con, "id = ?", node_id)


def find_node_by_name(con: Connection, text: str) -> Node | None:
    """The node that has this id or prefix."""
    return _NODES.find(con, "id = ? OR prefix = ?", text, text)


def list_nodes(con: Connection, limit: int, offset: int) -> list[Node]:
    """Nodes in the order of their making."""
    return _NODES.select(con, "ORDER BY created_at_ms, id LIMIT ? OFFSET ?", limit, offset)


def all_nodes(con: Connection) -> dict[str, Node]:
    """Every node that can be read, by its id; one that cannot is logged."""
    nodes = _NODES.select_readable(con, log, "a provider node cannot be read")
    return {node.id: node for node in nodes}


def count_nodes(con: Connection) -> int:
    """How many nodes there are."""
    return _NODES.count(con)
