"""Generates `docs/reference/settings.md` from the two lists of settings.

`make reference` writes the page; a test compares the committed copy.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from fairlead.process.setting_names import flag_of, variable_of
from fairlead.settings import ServeFields
from fairlead.store.operator_settings import OperatorSettings

HEAD = """\
# Settings

Written from the code by `make reference`.

## At start

`fairlead serve` reads each from its flag, else from its environment variable, else takes the
default. A value that breaks its rule, or a combination that must not start, is refused in one
sentence with exit code 2.

| flag | environment | type | default | rule | what it is |
| --- | --- | --- | --- | --- | --- |
"""

MIDDLE = """
## While it runs

`GET`, `PATCH` and `PUT /api/settings`. `PATCH` changes what is sent; `PUT` puts what is not sent
back to its default. Each answer carries `settingsRevision`, which grows by one with each change; a
body that carries it is refused with 409 when somebody else has changed the settings since.

| name | type | default | rule | what it is |
| --- | --- | --- | --- | --- |
"""


def settings_reference() -> str:
    """The page."""
    start = [
        f"| {_flag(name)} | `{variable_of(name)}` | {_type(field)} | {_default(field)} "
        f"| {_rule(field)} | {field.description} |"
        for name, field in ServeFields.model_fields.items()
    ]
    running = [
        f"| `{field.alias}` | {_type(field)} | {_default(field)} "
        f"| {_rule(field)} | {field.description} |"
        for field in _fields(OperatorSettings)
    ]
    return HEAD + "\n".join(start) + "\n" + MIDDLE + "\n".join(running) + "\n"


def _fields(model: type[BaseModel]) -> list[FieldInfo]:
    return list(model.model_fields.values())


def _flag(name: str) -> str:
    flag = flag_of(name)
    return f"`{flag}`" if flag else ""


def _kinds(field: FieldInfo) -> tuple[object, ...]:
    if get_origin(field.annotation) in (list, dict):
        return (get_origin(field.annotation),)
    parts = get_args(field.annotation) or (field.annotation,)
    return tuple(get_args(part)[0] if get_origin(part) is Annotated else part for part in parts)


def _type(field: FieldInfo) -> str:
    names = {
        bool: "boolean",
        int: "integer",
        str: "text",
        Path: "path",
        SecretStr: "secret",
        list: "list of text",
        dict: "object",
    }
    return next((name for kind, name in names.items() if kind in _kinds(field)), "")


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is None:
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _rule(field: FieldInfo) -> str:
    bounds = {
        bound: getattr(rule, bound)
        for rule in field.metadata
        for bound in ("ge", "le")
        if hasattr(rule, bound)
    }
    return f"{bounds['ge']} to {bounds['le']}" if len(bounds) == 2 else ""


def main() -> None:
    """Writes the committed copy."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/settings.md")
    target.write_text(settings_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
