"""A tool endpoint for people's own programs: `/mcp`, by a session's cookie or a static token, never
by an OAuth access token.

It takes `{"tool": ..., "input": {...}}` and answers `{"ok", "data", "meta"}` or `{"ok", "error"}`;
and the messages of the protocol, for clients that are set up with a fixed header.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from fairlead import __version__
from fairlead.calls.caller import Caller, CallerDep
from fairlead.mcp.http import EVENTS, JSON, is_foreign, origin_by_address, refuse, serve_message
from fairlead.mcp.message import RpcError, read_object
from fairlead.mcp.revision import SUPPORTED
from fairlead.mcp.server import Server, ToolFailed, run_tool
from fairlead.mcp.tool import Call
from fairlead.records.people import Person, find_person
from fairlead.records.static_tokens import find_token_person
from fairlead.store.services import Services, ServicesDep

# A page of another origin cannot send it without asking, and is not allowed to.
CSRF_HEADER = "x-fairlead"
ADAPTER = 1


def static_endpoint(path: str, server: Server) -> APIRouter:
    """The endpoint at `path`, with and without a slash behind it."""
    router = APIRouter(tags=["tools"])

    async def answer(request: Request, services: ServicesDep, caller: CallerDep) -> Response:
        return await _answer(server, request, services, caller)

    plain = path.strip("/").replace("/", "_")
    for spelled, suffix, methods in (
        (path, "", ("GET", "POST", "DELETE")),
        (f"{path}/", "_slash", ("GET", "POST")),
    ):
        for method in methods:
            name = f"{method.lower()}_{plain}{suffix}"
            router.add_api_route(
                spelled,
                answer,
                methods=[method],
                name=name,
                operation_id=name,
                response_class=Response,
                summary=f"The tool endpoint for sessions and static tokens, {method}",
            )
    return router


async def _answer(server: Server, request: Request, services: Services, caller: Caller) -> Response:
    access = services.tool_access
    own = None if access is None else access.origin(request, caller)
    if is_foreign(request, {own, origin_by_address(caller)}):
        return _failed(403, "FORBIDDEN", "A page of another origin may not call this.")
    has_header = "authorization" in request.headers
    person = await _person(request, services, caller)
    if person is None and has_header:
        # A bearer that is no good is not made up for by a cookie.
        return _failed(401, "AUTH_REQUIRED", "Authentication required")
    if request.method == "GET":
        return _capabilities(server, request, person)
    if request.method != "POST":
        return refuse(405, allow="GET, POST")
    if person is None:
        return _failed(401, "AUTH_REQUIRED", "Sign-in required for this tool")
    if not has_header and request.headers.get(CSRF_HEADER) != "1":
        return _failed(403, "FORBIDDEN", "With a cookie, send X-Fairlead: 1 too.")
    call = Call(services, person)
    body = await request.body()
    try:
        document = read_object(body)
    except RpcError as error:
        return _failed(400, "VALIDATION_ERROR", error.message)
    if "jsonrpc" in document:
        return await serve_message(server, request, call)
    return await _run(server, document, call)


async def _person(request: Request, services: Services, caller: Caller) -> Person | None:
    lines = request.headers.getlist("authorization")
    if not lines:
        principal = caller.principal
        if principal.kind != "session" or principal.id is None:
            return None
        user_id = principal.id
        return await services.state.read(lambda con: find_person(con, user_id))
    scheme, _, token = lines[0].partition(" ")
    if len(lines) > 1 or scheme.lower() != "bearer":
        return None
    return await services.state.read(lambda con: find_token_person(con, token.strip()))


def _capabilities(server: Server, request: Request, person: Person | None) -> Response:
    accepts = request.headers.get("accept", "*/*")
    if EVENTS in accepts and JSON not in accepts and "*/*" not in accepts:
        return refuse(405, allow="GET, POST")
    tools = [] if person is None else server.toolbox.for_person(person)
    return _succeeded(
        {
            "name": server.name,
            "version": __version__,
            "protocolVersions": list(SUPPORTED),
            "auth": {
                "mode": "sessionCookie",
                "authMethods": ["sessionCookie", "bearer"],
                "authenticated": person is not None,
            },
            "implementedTools": [tool.name for tool in tools],
        },
        {"adapterVersion": ADAPTER},
    )


async def _run(server: Server, body: dict[str, Any], call: Call) -> Response:
    unknown = sorted(body.keys() - {"tool", "input"})
    name, given = body.get("tool"), body.get("input", {})
    if unknown or not isinstance(name, str) or not isinstance(given, dict):
        return _failed(
            400, "VALIDATION_ERROR", 'The body must be {"tool": "<name>", "input": {...}}.'
        )
    tool = server.toolbox.find(name, call.person)
    if tool is None:
        return _failed(404, "NOT_FOUND", f"There is no tool {json.dumps(name[:64])}.")
    try:
        return _succeeded(await run_tool(tool, given, call), {})
    except ToolFailed as failed:
        document = failed.document()
        return _failed(
            failed.error.status, document["code"], document["message"], document["details"]
        )


def _succeeded(data: dict[str, Any], meta: dict[str, Any]) -> Response:
    return _envelope(200, {"ok": True, "data": data, "meta": meta})


def _failed(
    status: int, code: str, message: str, details: dict[str, Any] | None = None
) -> Response:
    error = {"code": code, "message": message, "details": details or {}}
    return _envelope(status, {"ok": False, "error": error})


def _envelope(status: int, body: dict[str, Any]) -> Response:
    return Response(orjson.dumps(body), status, {"cache-control": "no-store"}, JSON)
