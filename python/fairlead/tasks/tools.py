"""The four tools as a table, for agents (`/mcp/tasks`) and for the routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from fairlead.mcp.server import Server
from fairlead.mcp.tool import Call, Tool, toolbox
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.tasks.answer import DIFF, HEALTH, MANAGE, ORCHESTRATE, invalid
from fairlead.tasks.envelope import Envelope
from fairlead.tasks.fields import DiffRequest, HealthRequest, ManageRequest, OrchestrateRequest
from fairlead.tasks.health import diff, health
from fairlead.tasks.manage import manage
from fairlead.tasks.orchestrate import orchestrate

Act = Callable[[Connection, str, Any, int], Envelope]

INSTRUCTIONS = (
    "Reverse tasks: long pieces of analysis in stages, with evidence, kept between "
    "sessions. Begin with manage_reverse_task (action list); create a task with action "
    "update, a taskId of your choice and a goal. Every answer is one envelope: make "
    "the call of continuation.invoke unchanged when continuation.ready is true; when "
    "it is false, the call does not advance the work."
)


def refused(name: str, given: Any, message: str) -> Envelope:
    """The envelope for input that breaks a rule of the tool; `given` can be any JSON value."""
    sent = given if isinstance(given, dict) else {}
    action, mode = sent.get("action"), sent.get("outputMode")
    return invalid(
        message,
        action[:64] if isinstance(action, str) and action else name,
        "compact" if mode == "compact" else "verbose",
    )


# Many parameters: it fills a row of the table below.
def _tool(
    name: str, title: str, description: str, takes: type[BaseModel], act: Act, *, repeats: bool
) -> Tool[Any]:
    async def run(call: Call, request: BaseModel) -> Envelope:
        owner = call.person.id
        return await call.services.state.record(lambda con: act(con, owner, request, now_ms()))

    def refuse(given: dict[str, Any], message: str) -> Envelope:
        return refused(name, given, message)

    return Tool(
        name,
        title,
        description,
        takes,
        Envelope,
        run,
        repeats=repeats,
        group="reverse tasks",
        refuse=refuse,
    )


TOOLS: tuple[Tool[Any], ...] = (
    _tool(
        MANAGE,
        "Manage a reverse task",
        "Lists, makes, reads, changes, tags, archives and compares reverse tasks.",
        ManageRequest,
        manage,
        repeats=False,
    ),
    _tool(
        ORCHESTRATE,
        "Orchestrate a reverse task",
        "Runs the steps of a strategy as far as possible; with resume it continues after the last finished step.",
        OrchestrateRequest,
        orchestrate,
        repeats=False,
    ),
    _tool(
        HEALTH,
        "Rebuild health",
        "The state of a task's rebuild: what its environment lacks, where it first diverges.",
        HealthRequest,
        health,
        repeats=True,
    ),
    _tool(
        DIFF,
        "Diff environment requirements",
        "Lists what a runtime error requires that the environment does not have, and what to patch.",
        DiffRequest,
        diff,
        repeats=True,
    ),
)

SERVER = Server("fairlead-tasks", "fairlead reverse tasks", INSTRUCTIONS, toolbox(TOOLS))
