"""Tools: the types of their input and output, and their functions."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from fairlead.records.people import Person
from fairlead.store.services import Services

Input = TypeVar("Input", bound=BaseModel)

# One name that a large client does not take makes it drop every tool of the session.
NAME = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True)
class Call:
    """The user on whose behalf a tool is called, and its services."""

    services: Services
    person: Person


@dataclass(frozen=True)
class Tool(Generic[Input]):
    """One tool. `reads` says that it changes nothing, `destroys` that it deletes for good, `repeats` that a second
    call with the same input changes nothing. `needs_manage`: only people who manage the gateway can use it.
    """

    name: str
    title: str
    description: str
    takes: type[Input]
    gives: type[BaseModel]
    run: Callable[[Call, Input], Awaitable[BaseModel]]
    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    needs_manage: bool = False
    group: str = "board"
    refuse: Callable[[dict[str, Any], str], BaseModel] | None = None
    """Makes a result of bad input and the sentence about it, for tools whose every answer has one form."""

    @cached_property
    def listing(self) -> dict[str, Any]:
        """The tool as `tools/list` shows it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": _schema(self.takes, "validation"),
            "outputSchema": _schema(self.gives, "serialization"),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.reads,
                "destructiveHint": self.destroys,
                "idempotentHint": self.reads or self.repeats,
                "openWorldHint": False,
            },
        }


@dataclass(frozen=True)
class Toolbox:
    """The tools of an endpoint, in the order in which they are listed."""

    tools: tuple[Tool[Any], ...]
    by_name: dict[str, Tool[Any]] = field(init=False)

    def __post_init__(self) -> None:
        by_name = {tool.name: tool for tool in self.tools}
        wrong = [tool.name for tool in self.tools if NAME.fullmatch(tool.name) is None]
        if wrong or len(by_name) != len(self.tools):
            raise ValueError(f"names of tools are of a-z, 0-9 and _, each once: {wrong}")
        object.__setattr__(self, "by_name", by_name)

    def for_person(self, person: Person) -> list[Tool[Any]]:
        """The tools that this user can call."""
        return [tool for tool in self.tools if person.manages or not tool.needs_manage]

    def find(self, name: str, person: Person) -> Tool[Any] | None:
        """By name; `a.b` is another spelling of `a_b`."""
        tool = self.by_name.get(name) or self.by_name.get(name.replace(".", "_"))
        return None if tool is None or (tool.needs_manage and not person.manages) else tool


def toolbox(*groups: Iterable[Tool[Any]]) -> Toolbox:
    """All the tools of these groups."""
    return Toolbox(tuple(tool for group in groups for tool in group))


def _schema(model: type[BaseModel], mode: Any) -> dict[str, Any]:
    schema = model.model_json_schema(mode=mode)
    schema.setdefault("properties", {})
    shown: dict[str, Any] = _untitled(schema)
    return shown


def _untitled(schema: Any) -> Any:
    """Without the titles that pydantic makes of names: they say nothing that the names do not."""
    if isinstance(schema, list):
        return [_untitled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _untitled(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else _untitled(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
