"""The board's tools: one for each operation of the table."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from fairlead.board.operation import Operation
from fairlead.board.operations import OPERATIONS
from fairlead.board.tool_pages import fetch_page
from fairlead.mcp.tool import Call, Tool
from fairlead.records.people import Person
from fairlead.store.file import Connection


def _tool(operation: Operation) -> Tool[Any]:
    call_operation = operation.tool or _make_call(operation)

    async def run(call: Call, tool_input: BaseModel) -> BaseModel:
        def in_transaction(con: Connection) -> BaseModel:
            return call_operation(con, call.person, tool_input)

        state = call.services.state
        return await (
            state.read(in_transaction) if operation.reads else state.record(in_transaction)
        )

    return Tool(
        operation.name,
        operation.title,
        operation.description,
        operation.takes,
        operation.gives,
        run,
        reads=operation.reads,
        destroys=operation.destroys,
        repeats=operation.repeats,
    )


def _make_call(operation: Operation) -> Any:
    """Calls the operation with the fields of the tool's input; a list is given in parts."""
    # The ids: the body of a record and the place in a list are read apart.
    names = operation.parameters.keys() - {"body", "limit", "offset"}

    def call_function(con: Connection, person: Person, tool_input: Any) -> BaseModel:
        arguments = {name: getattr(tool_input, name) for name in names}
        if operation.is_list:
            return fetch_page(
                tool_input,
                operation.gives,
                lambda limit, offset: operation.function(
                    con, person, **arguments, limit=limit, offset=offset
                ),
            )
        if "body" in operation.parameters:
            arguments["body"] = _body(tool_input)
        return operation.run(con, person, arguments)

    return call_function


def _body(tool_input: Any) -> BaseModel:
    """The fields of the record: in `changes` where every one of them may be left out."""
    fields = type(tool_input).model_fields
    body: BaseModel = tool_input.changes if "changes" in fields else tool_input
    return body


TOOLS: tuple[Tool[Any], ...] = tuple(_tool(operation) for operation in OPERATIONS)
