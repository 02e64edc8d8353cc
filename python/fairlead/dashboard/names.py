"""Names of what the log knows by ids: keys and connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fairlead.dashboard.api import Api

PAGE: Final = 500
LISTED_MAX: Final = 5_000


@dataclass(frozen=True, slots=True)
class Names:
    """By id. An id without a name is of something that was deleted."""

    keys: dict[str, str]
    connections: dict[str, str]

    def key(self, key_id: str | None) -> str:
        """A key's name."""
        return "no key" if key_id is None else self.keys.get(key_id, f"deleted, {key_id[:8]}")

    def connection(self, connection_id: str | None) -> str:
        """A connection's name."""
        if connection_id is None:
            return "none"
        return self.connections.get(connection_id, f"deleted, {connection_id[:8]}")


async def read_names(api: Api) -> Names:
    """The names of all keys and connections."""
    keys = await read_all(api, "/api/keys", "keys")
    connections = await read_all(api, "/api/providers", "connections")
    return Names(
        {each["id"]: each["name"] for each in keys},
        {each["id"]: each["displayName"] or each["name"] for each in connections},
    )


async def read_all(api: Api, path: str, member: str) -> list[dict[str, Any]]:
    """Every record of a list, at most `LISTED_MAX`."""
    found: list[dict[str, Any]] = []
    while len(found) < LISTED_MAX:
        answer = await api.get(path, limit=PAGE, offset=len(found))
        found += answer[member]
        if not answer[member] or len(found) >= answer["total"]:
            break
    return found
