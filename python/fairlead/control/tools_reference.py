"""`docs/reference/tools.md`: every tool as its types say; written from the code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fairlead.control.tools import RPC, STATIC
from fairlead.mcp.tool import Tool
from fairlead.tasks.tools import TOOLS as REVERSE_TASKS

HEAD = """# Tools

<!-- Written by `make reference`. -->

What programs can call at `/mcp/rpc` (with an OAuth access token) and at `/mcp` (with a session or a static token);
how, is told in [use the board](../how-to/use-the-board.md). Each tool has the schemas of its input and output in
`tools/list`. Hints: *reads* changes nothing, *deletes* takes something away for good, *repeatable* changes nothing more
when it is called again with the same input.
"""

ABOUT_TASKS = """At `/mcp/tasks` only (with a session or a static token), and each as `POST /api/tasks/<tool>`: see
[work on reverse tasks](../how-to/work-on-reverse-tasks.md). All answer with one envelope
([its schema](agent-envelope.schema.json)).
"""


def tools_reference() -> str:
    """The page, the same for the same code."""
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


def _rows(schema: dict[str, Any], defs: dict[str, Any], prefix: str) -> list[str]:
    required = set(schema.get("required", ()))
    rows = []
    for name, field in schema["properties"].items():
        inner = _resolved(field, defs)
        found = [each.get("description") for each in (field, inner, *field.get("anyOf", ()))]
        about = [text for text in found if text][:1]
        if name in required:
            about.insert(0, "Required.")
        if field.get("default") not in (None, "", []):
            default = field["default"]
            shown = default if isinstance(default, str) else json.dumps(default)
            about.append(f"Default `{shown}`.")
        is_object = "properties" in inner
        if is_object:
            about = ["Required."] if name in required else []
        said = " ".join(" ".join(about).split())
        rows.append(f"| `{prefix}{name}` | {_type(field, defs)} | {said} |")
        if is_object:
            rows += _rows(inner, defs, f"{prefix}{name}.")
    return rows


def _resolved(field: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in field:
        found: dict[str, Any] = defs[field["$ref"].rpartition("/")[2]]
        return found
    return field


def _type(field: dict[str, Any], defs: dict[str, Any]) -> str:
    field = _resolved(field, defs)
    if "anyOf" in field:
        return " or ".join(_type(each, defs) for each in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{each}`" for each in field["enum"])
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"list of {_type(field.get('items', {}), defs)}"
    if field.get("format") == "date":
        return "date"
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"{kind}, {low} to {high}"
    if "maxLength" in field:
        return f"{kind}, at most {field['maxLength']}"
    return kind


def main() -> None:
    """Writes the committed copy."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/tools.md")
    target.write_text(tools_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
