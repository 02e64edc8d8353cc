"""The guard before writing in a container: a configuration that is gone with the container helps nobody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlead.coding_tools.container import is_container, is_from_host, mount_table
from fairlead.coding_tools.entry import ToolEntry
from fairlead.coding_tools.environment import WORKSPACES

EPHEMERAL = "fairlead runs in a container, and this tool's configuration would be gone with it: nothing was written."


def is_ephemeral(tool: ToolEntry, home: Path, environment: Mapping[str, str]) -> bool:
    """Whether this is a container and one of the tool's files lies on none of the host's mounts."""
    if not is_container(environment) or any(environment.get(name) for name in WORKSPACES):
        # In a workspace the tools run in the same container, so their configuration belongs there.
        return False
    mounts = mount_table()
    return any(not is_from_host(home / file.path, mounts) for file in tool.files)


def host_command(tool: ToolEntry, url: str) -> str | None:
    """The command that configures the tool from the host, where that can be done; the key is for the user to put in."""
    if not tool.host_recipe:
        return None
    return f"fairlead setup-{tool.id} --remote {url} --api-key <API_KEY>"
