"""The commands `setup-<tool>`, one for each coding tool of the catalogue, beside all others.

In a list a tool is its name; its command is made when it is run, because reading all tools would slow
every other command down.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from typer.core import TyperCommand

from fairlead.cli.group import TOOLS, CommandGroup

SETUP_PREFIX: Final = "setup-"


class ToolCommands(CommandGroup):
    """The group of all commands, those of coding tools too."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *(SETUP_PREFIX + name for name in displayed_tools())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        tool = cmd_name.removeprefix(SETUP_PREFIX)
        if cmd_name.startswith(SETUP_PREFIX) and tool in displayed_tools():
            return TyperCommand(cmd_name, help=summary_of_tool(tool), rich_help_panel=TOOLS)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name.startswith(SETUP_PREFIX):
            # Imported when it is run, as every command is.
            setup = import_module("fairlead.cli.setup")
            command = setup.setup_command(name.removeprefix(SETUP_PREFIX))
        return name, command, rest


def summary_of_tool(tool: str) -> str:
    """The line of a tool's command in the list of commands."""
    return f"Point {displayed_tools()[tool]} at the gateway."


@cache
def displayed_tools() -> dict[str, str]:
    """The tools that can be set up with their names, read without checking the files."""
    folder = Path(__file__).parents[1] / "data" / "coding_tools"
    found = {}
    for path in sorted(folder.glob("*.toml")):
        # What a tool is called stands before its first table.
        entry = tomllib.loads(path.read_text("utf-8").partition("\n[")[0])
        if entry["baseUrlSupport"] != "none" and entry["category"] != "launcher":
            found[path.stem] = entry["name"]
    return found
