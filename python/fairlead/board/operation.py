"""The type of one operation of the board: a function, and how it is offered over HTTP, as a tool and by a form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from pydantic import BaseModel

from fairlead.records.people import Person
from fairlead.store.file import Connection


@dataclass(frozen=True, slots=True)
class Route:
    """An HTTP route; its path is below `/api/board`."""

    method: str
    path: str
    summary: str
    status: int = 200
    # Part of the OpenAPI operation id, where that is not the name of the function.
    name: str | None = None


@dataclass(frozen=True)
class Operation:
    """One operation. `function` takes a connection, the caller, and `parameters`. Its answer is converted to
    `gives` if it is not one already. `takes` is the input of the tool.

    The hints are those of `fairlead.mcp.tool.Tool`. `form` handles a submitted form and returns the path of the
    next page; None if no page has such a form. `tool` replaces the tool if its input needs more than a call of
    `function`.
    """

    name: str
    title: str
    description: str
    takes: type[BaseModel]
    gives: type[BaseModel]
    function: Callable[..., BaseModel]
    route: Route | None
    reads: bool = False
    repeats: bool = False
    destroys: bool = False
    form: Callable[[Operation, Connection, Person, dict[str, str]], str] | None = None
    tool: Callable[[Connection, Person, Any], BaseModel] | None = None

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the function behind the connection and the person, with their types."""
        hints = get_type_hints(self.function)
        return {name: hints[name] for name in list(inspect.signature(self.function).parameters)[2:]}

    @cached_property
    def body(self) -> type[BaseModel]:
        """The type of the fields that a client sends; `KeyError` where it sends none."""
        model: type[BaseModel] = self.parameters["body"]
        return model

    @cached_property
    def is_list(self) -> bool:
        """Whether the answer is one part of a longer list."""
        return "limit" in self.parameters

    @cached_property
    def answer(self) -> type[BaseModel]:
        """The type of the answer over HTTP: lists have a total there, where tools have a cursor."""
        return get_type_hints(self.function)["return"] if self.is_list else self.gives

    def run(self, con: Connection, person: Person, arguments: dict[str, Any]) -> BaseModel:
        """Calls the function, in a transaction; the answer is of the type `answer`."""
        found = self.function(con, person, **arguments)
        if isinstance(found, self.answer):
            return found
        (field,) = self.gives.model_fields
        return self.gives(**{field: found})
