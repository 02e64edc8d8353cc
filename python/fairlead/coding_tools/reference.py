"""`docs/reference/tools-for-coding.md`, written from the catalogue.

`make reference` writes it; a test compares the page with the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from fairlead.coding_tools.catalogue import catalogue
from fairlead.coding_tools.entry import ToolEntry
from fairlead.coding_tools.formats.change import name_of

HEAD = """\
# Tools for coding

Written from the catalogue by `make reference`: one file each in `python/fairlead/data/coding_tools/`.
Adding a tool is adding a file.

`fairlead setup-<id>` writes the files of a tool, below the home directory, and sets only the members
that are named here; `fairlead undo <id>` takes them back. `fairlead run <id>` starts a tool with the
gateway's environment and writes nothing. **Checked with** is the version that was driven through a
gateway, unmodified; `documentation` means that the file follows the tool's own documentation or
schema, for the reason given at the end.
"""

ACP = """
## Tools that the gateway starts as models

`FAIRLEAD_ACP_TOOLS` names those that it may start: [how](../how-to/start-coding-tools-as-models.md).
Each needs the command below, which speaks the Agent Client Protocol: the tool's own, or its maker's adapter.

| model | command |
| --- | --- |
"""

WITHOUT_ACP = """
Known as tools that could be started, and without a command of their maker's that speaks the protocol: {}.
"""

HIDDEN = """
## Tools whose address cannot be set

They are known and not displayed. No traffic of theirs is intercepted: `/api/cli-tools/<id>-mitm` keeps
aliases for the two whose requests a proxy of yours may bring here.

"""

UNTRIED = """
## Why some were not driven

- Crush: its npm package fetches the program from outside the registry while it is installed.
- Kilo Code: its npm package names parts that the registry does not have.
- DeepSeek TUI, CodeWhale, Goose, ForgeCode, Factory Droid, Cursor CLI, Grok Build, Smelt and jcode: no packages of
  npm or PyPI, or ones that fetch the program from elsewhere.
- Roo Code and Warp AI: parts of an editor and of a terminal, without a command to drive.
- Hermes Agent, Open Claw, Open Interpreter, Agent Deck, Oh My Pi, Letta CLI, Prime Agent and 5dive: what is written
  follows their documentation.
"""

_MODELS = {
    "listed": "all are written",
    "one": "the chosen one",
    "automatic": "it asks the gateway",
}
_TITLES = {
    "code": "Code tools",
    "agent": "Agents",
    "launcher": "Started by `fairlead run` alone",
}


def tools_reference() -> str:
    """The text of the page."""
    tools = list(catalogue().values())
    parts = [HEAD]
    for category, title in _TITLES.items():
        shown = [
            tool for tool in tools if tool.category == category and tool.base_url_support != "none"
        ]
        parts += [f"\n## {title}\n\n", *_table(shown), *(_details(tool) for tool in shown)]
    parts += [ACP, *_acp_table(tools)]
    without = (
        f"{tool.name} (`{tool.id}`)" for tool in tools if tool.acp_spawnable and not tool.acp
    )
    parts.append(WITHOUT_ACP.format(", ".join(without)))
    hidden = (tool for tool in tools if tool.base_url_support == "none")
    parts += [HIDDEN, *(f"- {tool.name} (`{tool.id}`): {tool.description}\n" for tool in hidden)]
    return "".join([*parts, UNTRIED])


def _table(tools: list[ToolEntry]) -> Iterator[str]:
    yield "| id | name | vendor | address can be set | models | command | run | checked with |\n"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    for tool in tools:
        names = ["yes", *tool.launch.aliases] if tool.launch else ["no"]
        cells = (
            f"`{tool.id}`",
            f"[{tool.name}]({tool.docs_url})",
            tool.vendor,
            tool.base_url_support,
            _MODELS[tool.models],
            f"`{tool.detection.command}`" if tool.detection else "none",
            ", ".join(names),
            tool.checked_with,
        )
        yield f"| {' | '.join(cells)} |\n"


def _acp_table(tools: list[ToolEntry]) -> Iterator[str]:
    for tool in tools:
        if tool.acp is not None:
            command = " ".join([tool.acp.command, *tool.acp.arguments])
            yield f"| `acp/{tool.id}` | `{command}` |\n"


def _details(tool: ToolEntry) -> str:
    lines = [f"\n### {tool.name}\n\n{tool.description}\n"]
    for file in tool.files:
        secret = ", with the key" if file.secret else ""
        if file.members:
            places = (f"`{name_of(tuple(each.at))}`" for each in file.members)
            lines.append(f"- `~/{file.path}` ({file.format}{secret}): {', '.join(places)}\n")
        for old in file.old_members:
            place = name_of(tuple(old))
            lines.append(
                f"- of an older form in `~/{file.path}`: `{place}`; `--migrate` takes it out\n"
            )
    if tool.launch and tool.launch.environment:
        names = ", ".join(f"`{name}`" for name in tool.launch.environment)
        lines.append(f"- `run` sets {names}\n")
    if tool.launch and tool.launch.home_variable:
        lines.append(f"- `run` gives it a temporary home by `{tool.launch.home_variable}`\n")
    lines += [f"- {step}\n" for step in tool.steps]
    return "\n".join([lines[0], "".join(lines[1:])]) if lines[1:] else lines[0]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(tools_reference(), encoding="utf-8")
