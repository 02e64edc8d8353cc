"""The tools as routes, `/api/tasks/<tool>`, for programs of signed-in people, and the schema of their responses."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends
from starlette.responses import Response

from fairlead.calls.caller import CallerDep
from fairlead.errors import Unauthenticated
from fairlead.mcp.static_endpoint import static_endpoint
from fairlead.mcp.tool import Call
from fairlead.records.people import Person, find_owner_person, find_person
from fairlead.store.services import ServicesDep
from fairlead.tasks.envelope import Envelope, envelope_schema
from fairlead.tasks.fields import DiffRequest, HealthRequest, ManageRequest, OrchestrateRequest
from fairlead.tasks.tools import SERVER

router = APIRouter(prefix="/api/tasks", tags=["reverse tasks"])


async def _person(services: ServicesDep, caller: CallerDep) -> Person:
    principal = caller.principal
    found = None
    if principal.kind == "session" and principal.id is not None:
        user_id = principal.id
        found = await services.state.read(lambda con: find_person(con, user_id))
    elif principal.kind == "local":
        found = await services.state.read(find_owner_person)
    if found is None:
        raise Unauthenticated(
            "Reverse tasks belong to people: sign in, or set up the owner first, in the console or "
            "with `fairlead owner set-password`."
        )
    return found


PersonDep = Annotated[Person, Depends(_person)]


@router.get("/envelope.schema.json", summary="The JSON Schema of what the tools answer")
async def schema() -> dict[str, Any]:
    """The JSON Schema of the envelope, version 1.0."""
    return envelope_schema()


async def _answer(name: str, request: Any, services: ServicesDep, person: Person) -> Response:
    given = await SERVER.toolbox.by_name[name].run(Call(services, person), request)
    shown = given.model_dump(mode="json", by_alias=True)
    return Response(orjson.dumps(shown), 200, {"cache-control": "no-store"}, "application/json")


@router.post("/manage_reverse_task", response_model=Envelope, summary="Manage reverse tasks")
async def manage(request: ManageRequest, services: ServicesDep, person: PersonDep) -> Response:
    """Runs the tool `manage_reverse_task`."""
    return await _answer("manage_reverse_task", request, services, person)


@router.post(
    "/orchestrate_reverse_task", response_model=Envelope, summary="Take the steps of a reverse task"
)
async def orchestrate(
    request: OrchestrateRequest, services: ServicesDep, person: PersonDep
) -> Response:
    """Runs the tool `orchestrate_reverse_task`."""
    return await _answer("orchestrate_reverse_task", request, services, person)


@router.post(
    "/get_rebuild_health_report", response_model=Envelope, summary="Show the state of a rebuild"
)
async def health(request: HealthRequest, services: ServicesDep, person: PersonDep) -> Response:
    """Runs the tool `get_rebuild_health_report`."""
    return await _answer("get_rebuild_health_report", request, services, person)


@router.post(
    "/diff_env_requirements", response_model=Envelope, summary="List what an environment lacks"
)
async def diff(request: DiffRequest, services: ServicesDep, person: PersonDep) -> Response:
    """Runs the tool `diff_env_requirements`."""
    return await _answer("diff_env_requirements", request, services, person)


ROUTERS: tuple[APIRouter, ...] = (router, static_endpoint("/mcp/tasks", SERVER))
