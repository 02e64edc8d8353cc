"""`/api/board`: projects, members, todos, sprints and tags; one route for each operation of the table.

Ids cannot be guessed, and only people who see a project learn those in it. Every record has a
`version` that grows by one with each change: a change that names a version is refused with 409 when
that is not the newest; one that names none is made on whatever there is, so the last write wins,
field by field.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from fairlead.board.caller import PersonDep
from fairlead.board.operation import Operation
from fairlead.board.operations import OPERATIONS
from fairlead.board.todos import TodoFilter
from fairlead.board.wire import Day, Status
from fairlead.records.people import Person
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Limit, Offset

router = APIRouter(prefix="/api/board", tags=["board"])


def _todo_filter(
    status: Status | None = None,
    assignee_id: Annotated[str | None, Query(alias="assigneeId", max_length=64)] = None,
    sprint_id: Annotated[str | None, Query(alias="sprintId", max_length=64)] = None,
    tag: Annotated[str | None, Query(max_length=40, description="By name.")] = None,
    text: Annotated[str | None, Query(max_length=200)] = None,
    due_before: Annotated[Day | None, Query(alias="dueBefore")] = None,
) -> TodoFilter:
    return TodoFilter(status, assignee_id, sprint_id, tag, text, due_before)


# What FastAPI reads a parameter from, where its name and type alone do not say it, and its default.
_SOURCES: dict[str, tuple[Any, Any]] = {
    "todo_filter": (Annotated[TodoFilter, Depends(_todo_filter)], Parameter.empty),
    "limit": (Limit, 50),
    "offset": (Offset, 0),
}


def _endpoint(operation: Operation) -> Callable[..., Awaitable[BaseModel]]:
    """The function that FastAPI calls: its signature is made of the operation's parameters."""

    async def endpoint(services: Services, person: Person, **arguments: Any) -> BaseModel:
        def run(con: Connection) -> BaseModel:
            return operation.run(con, person, arguments)

        state = services.state
        return await (state.read(run) if operation.reads else state.record(run))

    sources = {"services": (ServicesDep, Parameter.empty), "person": (PersonDep, Parameter.empty)}
    for name, kind in operation.parameters.items():
        sources[name] = _SOURCES.get(name, (kind, Parameter.empty))
    endpoint.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in sources.items()
        ]
    )
    return endpoint


for _operation in OPERATIONS:
    if _operation.route is not None:
        router.add_api_route(
            _operation.route.path,
            _endpoint(_operation),
            methods=[_operation.route.method],
            name=_operation.route.name or _operation.function.__name__,
            summary=_operation.route.summary,
            status_code=_operation.route.status,
            response_model=_operation.answer,
        )
