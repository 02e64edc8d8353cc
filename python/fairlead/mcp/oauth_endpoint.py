"""A tool endpoint for OAuth access tokens, and for nothing else: `/mcp/rpc`."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from fairlead.calls.caller import Caller, CallerDep
from fairlead.mcp.http import is_foreign, refuse, serve_message
from fairlead.mcp.server import Server
from fairlead.mcp.tool import Call
from fairlead.records.people import Person
from fairlead.store.services import Services, ServicesDep
from fairlead.store.tool_access import ToolRefusal

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def oauth_endpoint(path: str, server: Server) -> APIRouter:
    """The endpoint at `path`, which has one spelling: with a slash behind it leads there."""
    router = APIRouter(tags=["tools"])

    async def answer(request: Request, services: ServicesDep, caller: CallerDep) -> Response:
        return await _answer(server, request, services, caller)

    async def lead() -> Response:
        return refuse(308, location=path)

    for method in METHODS:
        name = f"{method.lower()}_{path.strip('/').replace('/', '_')}"
        router.add_api_route(
            path,
            answer,
            methods=[method],
            name=name,
            operation_id=name,
            response_class=Response,
            summary=f"The tool endpoint, {method}",
        )
    for method in ("GET", "POST"):
        name = f"{method.lower()}_{path.strip('/').replace('/', '_')}_slash"
        router.add_api_route(
            f"{path}/",
            lead,
            methods=[method],
            name=name,
            operation_id=name,
            response_class=Response,
            status_code=308,
            summary=f"To {path}",
        )
    return router


async def _answer(server: Server, request: Request, services: Services, caller: Caller) -> Response:
    access = services.tool_access
    if access is None:
        return refuse(503)
    own = access.origin(request, caller)
    if own is None:
        # Behind a proxy that says nothing it is ours to mend; else the caller came by a name that
        # is not the gateway's.
        return refuse(503 if services.config.service_trust_proxy else 421)
    if is_foreign(request, {own}):
        return refuse(403)
    user = await access.resolve(request, caller)
    if isinstance(user, ToolRefusal):
        answer = refuse(user.status)
        answer.headers.update(user.headers)
        return answer
    person = Person(user.user_id, user.name, user.email, user.manages)
    if request.method != "POST":
        return refuse(405, allow="POST")
    return await serve_message(server, request, Call(services, person))
