"""The catalogue of coding tools: one TOML file each in `fairlead/data/coding_tools/`. A new file is a new tool."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from fairlead.coding_tools.entry import ToolEntry

FOLDER: Final = Path(__file__).parents[1] / "data" / "coding_tools"

Catalogue = Mapping[str, ToolEntry]


def read_catalogue(folder: Path) -> Catalogue:
    """The tools of a folder by id. `ValueError` names a file that is not valid."""
    tools: dict[str, ToolEntry] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            tool = ToolEntry.model_validate(tomllib.loads(path.read_text("utf-8")))
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
        if tool.id != path.stem:
            raise ValueError(f"{path.name} describes the tool `{tool.id}`")
        tools[tool.id] = tool
    return tools


@cache
def catalogue() -> Catalogue:
    """The tools that ship with fairlead."""
    return read_catalogue(FOLDER)


def find_tool(tools: Catalogue, name: str) -> ToolEntry | None:
    """The tool with this id, or the one that is started by this other name."""
    if name in tools:
        return tools[name]
    named = (each for each in tools.values() if each.launch and name in each.launch.aliases)
    return next(named, None)
