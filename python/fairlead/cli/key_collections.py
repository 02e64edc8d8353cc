"""API keys and groups of keys, as the management API lists them."""

from __future__ import annotations

from typing import Any, Final

from fairlead.cli.collection import Collection

KEYS: Final = Collection(
    path="/api/keys",
    key="keys",
    kind="key",
    columns={
        "id": "id",
        "name": "name",
        "key": "keyPreview",
        "active": "isActive",
        "expires": "expiresAt",
        "last used": "lastUsedAt",
        "created": "createdAt",
    },
    change_by="patch",
    empty="There are no keys: create one with `fairlead keys create <name>`.",
)


def _path_label(group: dict[str, Any]) -> str:
    return " / ".join([*(each["name"] for each in group["path"]), group["name"]])


GROUPS: Final = Collection(
    path="/api/groups",
    key="groups",
    kind="group",
    columns={
        "id": "id",
        "name": _path_label,
        "active": "isActive",
        "keys": "keyCount",
        "members": "memberCount",
        "monthly USD": "monthlyUsageLimitUsd",
        "created": "createdAt",
    },
    change_by="patch",
    empty="There are no groups: create one with `fairlead groups create <name>`.",
)
