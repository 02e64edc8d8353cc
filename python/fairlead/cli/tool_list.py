"""The coding tools that have a command `setup-<tool>`, as a list of commands shows them."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Final

SETUP_PREFIX: Final = "setup-"


def summary_of_tool(tool: str) -> str:
    """The line of a tool's command in the list of commands."""
    return f"Configure {displayed_tools()[tool]} to call the gateway."


@cache
def displayed_tools() -> dict[str, str]:
    """The tools that can be set up with their names, read without checking the files."""
    folder = Path(__file__).parents[1] / "data" / "coding_tools"
    found = {}
    for path in sorted(folder.glob("*.toml")):
        # The tool's name comes before its first table.
        entry = tomllib.loads(path.read_text("utf-8").partition("\n[")[0])
        if entry["baseUrlSupport"] != "none" and entry["category"] != "launcher":
            found[path.stem] = entry["name"]
    return found
