"""Names of keys, connections, endpoints and groups, which the log knows by their ids."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from fairlead.dashboard.api import Api
from fairlead.records.budgets import KINDS

PAGE: Final = 500
LISTED_MAX: Final = 5_000
KEY_FIELDS: Final = (
    "id",
    "name",
    "isActive",
    "isBanned",
    "expiresAt",
    "allowedEndpoints",
    "accessSchedule",
    "ipAllowlist",
    "usageLimitEnabled",
    "usageLimitTz",
    *(kind.field for kind in KINDS),
)


@dataclass(frozen=True, slots=True)
class Names:
    """By id. An id without a name is of something that was deleted."""

    keys: dict[str, str]
    connections: dict[str, str]
    nodes: dict[str, str]
    groups: dict[str, str]

    def key(self, key_id: str | None) -> str:
        """A key's name."""
        return "no key" if key_id is None else self.keys.get(key_id, f"deleted, {key_id[:8]}")

    def connection(self, connection_id: str | None) -> str:
        """A connection's name."""
        if connection_id is None:
            return "none"
        return self.connections.get(connection_id, f"deleted, {connection_id[:8]}")

    def provider(self, provider: str | None) -> str:
        """An endpoint's name; a built-in provider's id."""
        return "none" if provider is None else self.nodes.get(provider, provider)

    def group(self, group_id: str | None) -> str:
        """A group's name."""
        if group_id is None:
            return "no group"
        return self.groups.get(group_id, f"deleted, {group_id[:8]}")


async def read_names(api: Api) -> Names:
    """The names of all of them."""
    return await api.cached("names", _read_names)


async def _read_names(api: Api) -> Names:
    keys, connections, nodes, groups = await asyncio.gather(
        read_keys(api),
        read_all(api, "/api/providers", "connections"),
        read_all(api, "/api/provider-nodes", "nodes"),
        read_all(api, "/api/groups", "groups"),
    )
    return Names(
        {each["id"]: each["name"] for each in keys},
        {each["id"]: each["displayName"] or each["name"] for each in connections},
        {each["id"]: each["name"] for each in nodes},
        {each["id"]: each["name"] for each in groups},
    )


async def read_keys(api: Api) -> list[dict[str, Any]]:
    """Settings of every key, those that most pages need; its use is not among them, which changes all the time."""
    return await api.cached("keys", _read_keys)


async def _read_keys(api: Api) -> list[dict[str, Any]]:
    keys = await read_all(api, "/api/keys", "keys")
    return [{name: key[name] for name in KEY_FIELDS} for key in keys]


async def read_all(api: Api, path: str, member: str) -> list[dict[str, Any]]:
    """Every record of a list, at most `LISTED_MAX`."""
    found: list[dict[str, Any]] = []
    while len(found) < LISTED_MAX:
        answer = await api.get(path, limit=PAGE, offset=len(found))
        found += answer[member]
        if not answer[member] or len(found) >= answer["total"]:
            break
    return found
