"""One message over HTTP: what each request to an endpoint is answered.

The order is that of the checks: origin, credential, method, media types, message. A request that is refused
before its message was read has no body. There are no sessions, no streams that wait for news and no events to
catch up with, so a GET is refused and an answer is one JSON text, or the one event of a stream for clients that
accept only streams.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

import structlog
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from fairlead.calls.caller import Caller
from fairlead.mcp.message import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Notification,
    RpcError,
    error_body,
    read_message,
    result_body,
)
from fairlead.mcp.revision import STATELESS, revision_of
from fairlead.mcp.server import Server
from fairlead.mcp.tool import Call
from fairlead.net.url import split_url

JSON = "application/json"
EVENTS = "text/event-stream"

log = structlog.get_logger("fairlead.mcp")


def is_foreign(request: HttpRequest, own: Collection[str | None]) -> bool:
    """Whether a page of an origin other than these made this request."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    origins = request.headers.getlist("origin")
    if not origins:
        return False
    return len(origins) > 1 or origins[0] not in own


def origin_by_address(caller: Caller) -> str | None:
    """The origin of pages that come by an address of this machine: a name can be made to mean it by
    whoever owns the name, an address cannot.
    """
    if caller.host is None or not _is_address(caller.host):
        return None
    return f"{caller.scheme}://{caller.host}"


def refuse(status: int, **headers: str) -> Response:
    """An answer without a body."""
    return Response(
        status_code=status,
        headers={"cache-control": "no-store"}
        | {name.replace("_", "-"): value for name, value in headers.items()},
    )


async def serve_message(server: Server, request: HttpRequest, call: Call) -> Response:
    """The answer to a POST whose caller is known and may call."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        return refuse(415)
    form = _form_of(request.headers.getlist("accept"))
    if form is None:
        return refuse(406)
    headers: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        headers.setdefault(name, []).append(value)
    try:
        message = read_message(await request.body())
    except RpcError as error:
        return _response(400, error_body(error), JSON)
    shown_id = None if isinstance(message, Notification) else message.id
    try:
        revision = revision_of(message, headers)
    except RpcError as error:
        return _response(400, error_body(error, shown_id), JSON)
    if isinstance(message, Notification):
        # None of those that clients send means anything to a server that remembers nothing.
        return refuse(202)
    try:
        result = await server.answer(message, revision, call)
    except RpcError as error:
        status = 200
        if revision == STATELESS:
            status = 404 if error.code == METHOD_NOT_FOUND else 400
        return _response(status, error_body(error, message.id), JSON if status != 200 else form)
    except Exception as error:  # noqa: BLE001 - the last place that answers in this protocol
        log.error("message failed", method=message.method[:64], error=type(error).__name__)
        failed = RpcError(INTERNAL_ERROR, "This is a defect of fairlead.")
        return _response(500, error_body(failed, message.id), JSON)
    return _response(200, result_body(message.id, result), form)


def _response(status: int, body: bytes, form: str) -> Response:
    if form == EVENTS:
        body = b"event: message\ndata: " + body + b"\n\n"
    return Response(body, status, {"cache-control": "no-store"}, form)


def _form_of(accepts: list[str]) -> str | None:
    """In which form the caller takes the answer: JSON wherever it takes that."""
    taken: set[str] = set()
    for part in ",".join(accepts).split(","):
        kind, *parameters = (each.strip().lower() for each in part.split(";"))
        if kind and "q=0" not in parameters:
            taken.add(kind)
    if not taken or taken & {JSON, "application/*", "*/*"}:
        return JSON
    return EVENTS if taken & {EVENTS, "text/*"} else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(split_url(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True
