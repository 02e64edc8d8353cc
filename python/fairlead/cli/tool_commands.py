"""The commands `setup-<tool>`, one for each coding tool of the catalogue, beside all others.

In a list a tool is its name; its command is made when it is run, because reading all tools would slow
every other command down.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from typer.core import TyperCommand

from fairlead.cli.group import TOOLS, CommandGroup
from fairlead.cli.tool_list import SETUP_PREFIX, displayed_tools, summary_of_tool


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
        wanted = args[0] if args else ""
        if wanted.startswith(SETUP_PREFIX) and self.get_command(ctx, wanted) is None:
            ctx.fail(f"No such command '{wanted}'.{_near_tools(wanted)}")
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name.startswith(SETUP_PREFIX):
            # Imported when it is run, as every command is.
            setup = import_module("fairlead.cli.commands.setup")
            command = setup.setup_command(name.removeprefix(SETUP_PREFIX))
        return name, command, rest


def _near_tools(wanted: str) -> str:
    """The setup commands that were probably meant."""
    from fairlead.text.near_names import did_you_mean

    return (
        did_you_mean(wanted, (SETUP_PREFIX + name for name in displayed_tools()))
        or " `fairlead configure` lists the coding tools."
    )
