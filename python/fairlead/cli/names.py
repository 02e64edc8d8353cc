"""Names of what the API knows by id, for people: prefixes of nodes, names of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance


def provider_names(instance: Instance) -> dict[str, str]:
    """The prefix of each node by its id; providers of the catalogue are known by their id."""
    nodes = instance.list_all("/api/provider-nodes", "nodes")
    return {str(node["id"]): str(node["prefix"]) for node in nodes}


def key_names(instance: Instance) -> dict[str, str]:
    """The name of each key by its id."""
    return {str(key["id"]): str(key["name"]) for key in instance.list_all("/api/keys", "keys")}
