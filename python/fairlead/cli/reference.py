"""`docs/reference/command-line.md`, written from the commands themselves.

`make reference` writes it; a test holds the copy to what the code says.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from fairlead.cli.app import app
from fairlead.cli.group import COMMANDS

HEAD: Final = """\
# Command line

Written from the code by `make reference`.

`fairlead <command> --help` shows the same text. Commands print tables for people; with `--json` they print the API's
response. Control characters in names and in answers of models are shown as codes. Set `NO_COLOR` to turn colours off.

| exit code | meaning |
| --: | --- |
| 0 | The command succeeded. |
| 1 | The command failed, or what it checks is not in order. Standard error has one sentence that says why. |
| 2 | The command was not started: an option is wrong, or the credential may not be sent to the address. |
| 130 | You pressed Ctrl-C. |

A command uses the first of these that is given: `--url`, `--context`, `--data-dir`, the context in use
(`fairlead contexts use`), the instance on this machine. Write `--context` before the command. See
[use a remote gateway](../how-to/use-a-remote-gateway.md).
"""


def command_reference() -> str:
    """The page."""
    commands = typer.main.get_command(app)
    sections = [HEAD]
    panels = dict.fromkeys(entry.panel for entry in COMMANDS.values() if entry.panel)
    for panel in panels:
        sections.append(f"\n## {panel}\n")
        for name, entry in COMMANDS.items():
            if entry.panel == panel:
                command: Any = commands.commands[name]  # type: ignore[attr-defined]
                sections += _sections(command, f"fairlead {name}")
    return "".join(sections)


def _sections(command: Any, path: str) -> Iterator[str]:
    """A group's commands, or the command alone."""
    members = getattr(command, "commands", None)
    if members is None:
        yield _section(command, path)
        return
    if command.invoke_without_command:
        # The group itself does something, too.
        yield _section(command, path)
    for name, member in members.items():
        if not member.hidden:
            yield from _sections(member, f"{path} {name}")


def _section(command: Any, path: str) -> str:
    rows = [_row(each) for each in command.params if not each.hidden and each.name != "help"]
    table = (
        ["", "| option | environment | default | what |", "| --- | --- | --- | --- |", *rows]
        if rows
        else []
    )
    help_text = re.sub(r"\n(?!\n)(?<!\n\n)", " ", command.help.strip())
    return "\n".join(["", f"### {path}", "", help_text, *table, ""])


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts] if is_option else [_argument(parameter)]
    name = ", ".join(f"`{each}`" for each in names)
    variable = f"`{parameter.envvar}`" if isinstance(parameter.envvar, str) else ""
    help_text = (parameter.help or "").replace("|", "\\|")
    return f"| {name} | {variable} | {_default(parameter)} | {help_text} |"


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required else f"[{name}]"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    shown = parameter.show_default if isinstance(parameter.show_default, str) else None
    value = shown or parameter.default
    if value is None or callable(value) or value is False:
        return ""
    if value is True:
        return "yes"
    return f"`{getattr(value, 'value', value)}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(command_reference(), "utf-8")
