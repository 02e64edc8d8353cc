"""Generates `docs/reference/tools.md`, every MCP tool with its types."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fairlead.control.schema_words import Schema, about, resolved, type_words
from fairlead.control.tools import RPC, STATIC
from fairlead.mcp.tool import Tool
from fairlead.tasks.tools import TOOLS as REVERSE_TASKS

HEAD = """# Tools

<!-- Written by `make reference`. -->

Programs can call these tools at `/mcp/rpc` (with an OAuth access token) and at `/mcp` (with a session or a static
token); [use the board](../how-to/use-the-board.md) shows how. Each tool has the schemas of its input and output in
`tools/list`. Hints: *reads* changes nothing, *deletes* removes something for good. A *repeatable* tool can be
called again with the same input without a further change.
"""

ABOUT_TASKS = """At `/mcp/tasks` only (with a session or a static token), and each as `POST /api/tasks/<tool>`: see
[work on reverse tasks](../how-to/work-on-reverse-tasks.md). All answer with one envelope
([its schema](agent-envelope.schema.json)).
"""


def tools_reference() -> str:
    """The page, deterministic for the same code."""
    gateway = [tool for tool in STATIC.toolbox.tools if tool.name not in RPC.toolbox.by_name]
    parts = [HEAD, "## Board\n", "At both endpoints.\n", *map(_tool, RPC.toolbox.tools)]
    parts += ["## Gateway\n", "At `/mcp` only, for people who manage the gateway.\n"]
    parts += map(_tool, gateway)
    parts += ["## Reverse tasks\n", ABOUT_TASKS, *map(_tool, REVERSE_TASKS)]
    return "\n".join(parts)


def _tool(tool: Tool[Any]) -> str:
    schema = tool.listing["inputSchema"]
    hints = [
        name
        for name, holds in (
            ("reads", tool.reads),
            ("deletes", tool.destroys),
            ("repeatable", tool.repeats),
        )
        if holds
    ]
    lines = [
        f"### {tool.name}\n",
        tool.description + (f" *{', '.join(hints)}*" if hints else ""),
        "",
    ]
    rows = _rows(schema, schema.get("$defs", {}), "")
    if rows:
        lines += ["| field | type | |", "| --- | --- | --- |", *rows, ""]
    fields = ", ".join(f"`{name}`" for name in tool.listing["outputSchema"]["properties"])
    lines.append(f"Gives {fields}.\n")
    return "\n".join(lines)


def _rows(schema: Schema, definitions: Schema, prefix: str) -> list[str]:
    required = set(schema.get("required", ()))
    rows = []
    for name, field in schema["properties"].items():
        inner = resolved(field, definitions)
        is_required = name in required
        is_object = "properties" in inner
        words = about(field, definitions, is_required=is_required)
        if is_object:
            words = "Required." if is_required else ""
        rows.append(f"| `{prefix}{name}` | {type_words(field, definitions)} | {words} |")
        if is_object:
            rows += _rows(inner, definitions, f"{prefix}{name}.")
    return rows


def main() -> None:
    """Writes the committed copy."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/tools.md")
    target.write_text(tools_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
