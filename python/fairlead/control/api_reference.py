"""Generates `docs/reference/api.md`, every route as the OpenAPI description has it."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from fairlead.control.app import routed_app
from fairlead.control.openapi import openapi_document
from fairlead.control.schema_words import Schema, about, resolved, type_words

HEAD = """# API

<!-- Written by `make reference`. -->

Every route of the gateway, by subject. The machine-readable description (OpenAPI 3.1) is served at
`GET /api/openapi.json`; the scraping routes have [a separate description](scraping-openapi.json). Errors are in the
[error reference](errors.md).

Each route says who may call it:

| caller | with what |
| --- | --- |
| anybody | nothing |
| inference | an API key, where keys are required |
| key | an API key always |
| management | a session, the local command-line token, an access token, or an API key with the scope `manage` |
| admin | the same, with an access token of the scope `admin` |
| session | a session of somebody who signed in, or the local command-line token |
| account | the same: about one's own account |
| own credential | the credential that the route's protocol defines |

An access token reads with the scope `read` and changes with `write`.
"""

_CALLERS = {"public": "anybody", "delegated": "own credential"}
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
_ROW_HEAD = ["| name | where | type | |", "| --- | --- | --- | --- |"]


def api_reference() -> str:
    """The page, deterministic for the same code."""
    document = openapi_document(routed_app())
    definitions: Schema = document["components"]["schemas"]
    operations = sorted(
        (str(operation["tags"][0]), path, _METHODS.index(method), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    page = _Page(definitions)
    lines = [HEAD]
    for tag, group in groupby(operations, key=lambda each: each[0]):
        lines.append(f"## {tag[:1].upper()}{tag[1:]}\n")
        for _, path, method, operation in group:
            lines += page.route(_METHODS[method].upper(), path, operation)
    lines += ["## Objects\n", "Types in bodies and answers.\n", *page.objects()]
    return "\n".join(lines)


class _Page:
    """Renders routes, and collects the objects that they name."""

    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions
        self._named: dict[str, None] = {}

    def route(self, method: str, path: str, operation: dict[str, Any]) -> list[str]:
        tier = str(operation["x-fairlead-tier"])
        purpose = str(operation["summary"]).rstrip(".")
        detail = " ".join(str(operation.get("description", "")).split())
        lines = [
            f"### {method} {path}\n",
            f"{purpose}. {detail}".rstrip() + f" *Caller: {_CALLERS.get(tier, tier)}.*\n",
        ]
        rows = [
            self._row(each["name"], each["in"], {**each, **each["schema"]}, each.get("required"))
            for each in operation.get("parameters", ())
        ]
        body = _json_schema(operation.get("requestBody", {}))
        members = resolved(body, self._definitions).get("properties", {})
        required = resolved(body, self._definitions).get("required", ())
        rows += [self._row(name, "body", each, name in required) for name, each in members.items()]
        if rows:
            lines += [*_ROW_HEAD, *rows, ""]
        elif body:
            lines.append(f"Body: {self._type(body)}.\n")
        answers = [
            f"{status} {self._type(schema)}" if (schema := _json_schema(answer)) else str(status)
            for status, answer in operation["responses"].items()
            if status != "default"
        ]
        lines.append(f"Answers {', '.join(answers)}.\n")
        return lines

    def objects(self) -> list[str]:
        """The named objects, and those that they name in turn."""
        lines: dict[str, list[str]] = {}
        while missing := [name for name in self._named if name not in lines]:
            for name in missing:
                lines[name] = self._object(name, self._definitions[name])
        return [line for name in sorted(lines) for line in lines[name]]

    def _object(self, name: str, schema: Schema) -> list[str]:
        required = schema.get("required", ())
        rows = [
            f"| `{member}` | {self._type(field)} | {self._about(field, member in required)} |"
            for member, field in schema["properties"].items()
        ]
        return [f"### {name}\n", "| name | type | |", "| --- | --- | --- |", *rows, ""]

    def _row(self, name: str, where: str, field: Schema, is_required: bool | None) -> str:
        words = self._about(field, bool(is_required))
        return f"| `{name}` | {where} | {self._type(field)} | {words} |"

    def _about(self, field: Schema, is_required: bool) -> str:
        return about(field, self._definitions, is_required=is_required).replace("|", "\\|")

    def _type(self, field: Schema) -> str:
        """The type as in `type_words`, with a link to objects that have members."""
        for key in ("anyOf", "oneOf"):
            if key in field:
                return " or ".join(self._type(each) for each in field[key])
        if field.get("type") == "array":
            return f"list of {self._type(field.get('items', {}))}"
        if "$ref" in field:
            name = str(field["$ref"]).rpartition("/")[2]
            if "properties" in self._definitions[name]:
                self._named.setdefault(name)
                return f"[{name}](#{name.lower()})"
            return self._type(self._definitions[name])
        return type_words(field, self._definitions).replace("|", "\\|")


def _json_schema(message: dict[str, Any]) -> Schema:
    schema: Schema = message.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def main() -> None:
    """Writes the committed copy."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/api.md")
    target.write_text(api_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
