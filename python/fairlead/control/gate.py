"""The entry of the control plane: only the relay is let in, and it says for whom it asks.

Plain ASGI. Without the link token a request is answered 403 and not looked at. With it, the caller
that the relay resolved goes into the scope (`fairlead.caller`), the body is read under a limit and
checked, and whatever goes wrong inside comes out in the management shape, the unexpected as
`internal` with the request's id.
"""

from __future__ import annotations

import asyncio
import hmac
import re

import orjson
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead import _core
from fairlead.caller import PRINCIPAL_KINDS, SCOPE_KEY, Caller, Principal
from fairlead.control.answers import error_response, path_pattern
from fairlead.control.body import BODY_MAX_BYTES, LONG_BODY_BYTES, check_json, read_body, replay
from fairlead.control.link import LINK_PATH
from fairlead.control.logs import where
from fairlead.control.workers import Workers
from fairlead.errors import FairleadError, Forbidden, Internal, StorageUnavailable
from fairlead.gateway.responses.internal import (
    BEGIN_MAX_BYTES,
    BEGIN_PATH,
    CONTEXT_PATH,
    KEEP_PATH,
)

REQUEST_DEADLINE_S = 60.0
UPLOAD_DEADLINE_S = 600.0
# The relay sets it beside the file of a form, and nobody else can.
FORM_HEADER = "x-fairlead-form"
# An answer that lasts as long as its reader takes; the header stays between the planes.
LASTING = b"x-fairlead-lasting"
WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
FORMS = frozenset(
    (route["method"], route["path"]) for route in _core.routes() if route["takes_form"]
)
# Routes that may be sent a file of bytes in place of JSON.
FILES = frozenset(
    (route["method"], route["path"])
    for route in _core.routes()
    if route["body"] in {"file", "upload"}
)
# The largest body of each route that takes more than a record.
LARGE_BODIES = {
    (route["method"], route["path"]): int(route["body_limit_bytes"])
    for route in _core.routes()
    if route["answered_by"] == "control" and route["body_limit_bytes"] > BODY_MAX_BYTES
}
# Paths whose rooms read their bodies themselves, and say in their own words what is wrong with them.
DELEGATED = re.compile(
    "|".join(
        path_pattern(str(route["path"])) for route in _core.routes() if route["tier"] == "delegated"
    )
)
# The limits of those routes whose paths have names in them, which cannot be looked up.
_NAMED = tuple(
    (re.compile(path_pattern(path)), method, limit)
    for (method, path), limit in LARGE_BODIES.items()
    if "{" in path
)

# What the relay asks for itself and on nobody's behalf.
INTERNAL = frozenset({LINK_PATH, KEEP_PATH, CONTEXT_PATH})

log = structlog.get_logger("fairlead.control")


class Gate:
    """Stands before the app."""

    def __init__(self, app: ASGIApp, link_token: str, workers: Workers) -> None:
        self._app = app
        self._link_token = link_token.encode()
        self._workers = workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _own_headers(scope)
        if not hmac.compare_digest(headers.get("x-fairlead-link", b""), self._link_token):
            await _refuse(
                Forbidden("Only the relay speaks to control."), None, scope, receive, send
            )
            return
        if scope["path"] in INTERNAL:
            await self._app(scope, receive, send)
            return
        await self._forwarded(headers, scope, receive, send)

    async def _forwarded(
        self, headers: dict[str, bytes], scope: Scope, receive: Receive, send: Send
    ) -> None:
        request_id = headers.get("x-fairlead-request-id", b"").decode("latin-1") or None
        started = False

        async def send_on(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start" and _is_stream(message):
                # It lasts as long as what it tells of; its maker bounds it.
                deadline.reschedule(None)
            await send(message)

        if worker_id := headers.get("x-fairlead-worker", b"").decode("latin-1"):
            self._workers.forwarded(worker_id)
        try:
            scope[SCOPE_KEY] = _caller(headers, request_id)
            async with asyncio.timeout(REQUEST_DEADLINE_S) as deadline:
                if FORM_HEADER in headers:
                    # A file, which its route writes as it comes; the relay held it to its limit.
                    deadline.reschedule(asyncio.get_running_loop().time() + UPLOAD_DEADLINE_S)
                elif scope["method"] in WITH_BODY:
                    body = await read_body(receive, body_limit(scope["method"], scope["path"]))
                    if body and not is_unread(scope["method"], scope["path"], headers):
                        kind = headers.get("content-type", b"").decode("latin-1")
                        if len(body) > LONG_BODY_BYTES:
                            await asyncio.to_thread(check_json, body, kind)
                        else:
                            check_json(body, kind)
                    receive = replay(body, receive)
                await self._app(scope, receive, send_on)
            return
        except FairleadError as error:
            answer = error
        except TimeoutError:
            answer = StorageUnavailable(
                f"The request took longer than {REQUEST_DEADLINE_S:g} s.", retry_after_s=5
            )
        except Exception as error:  # noqa: BLE001 - the last place that can answer
            log.error(
                "request failed",
                request_id=request_id,
                method=scope["method"],
                path=scope["path"][:200],
                error=type(error).__name__,
                where=where(error),
            )
            answer = Internal(
                "This is a defect of fairlead; the log has more under this request id."
            )
        if started:
            # Half an answer is out: only breaking the connection can say that it is not whole.
            raise ConnectionAbortedError("the answer had begun")
        await _refuse(answer, request_id, scope, receive, send)


def body_limit(method: str, path: str) -> int:
    """How many bytes a body may have."""
    if path == BEGIN_PATH:
        return BEGIN_MAX_BYTES
    if (most := LARGE_BODIES.get((method, path))) is not None:
        return most
    named = (limit for pattern, of, limit in _NAMED if of == method and pattern.fullmatch(path))
    return next(named, BODY_MAX_BYTES)


def is_unread(method: str, path: str, headers: dict[str, bytes]) -> bool:
    """Whether the body is passed on as it came, not held to the rules of JSON."""
    is_file = (method, path) in FILES and headers.get("content-type") == b"application/octet-stream"
    return is_file or DELEGATED.fullmatch(path) is not None or is_form(method, path, headers)


def is_form(method: str, path: str, headers: dict[str, bytes]) -> bool:
    """Whether the body is a form that this page takes; the relay held it to the page's origin."""
    kind = headers.get("content-type", b"").partition(b";")[0].strip().lower()
    return kind == b"application/x-www-form-urlencoded" and (method, path) in FORMS


def _is_stream(message: Message) -> bool:
    return any(
        name == LASTING or (name == b"content-type" and value.startswith(b"text/event-stream"))
        for name, value in message["headers"]
    )


def _own_headers(scope: Scope) -> dict[str, bytes]:
    # The relay strips what a caller sends under these names, so each is there once at most.
    return {
        name.decode("latin-1"): value
        for name, value in scope["headers"]
        if name.startswith(b"x-fairlead-") or name == b"content-type"
    }


def _caller(headers: dict[str, bytes], request_id: str | None) -> Caller:
    try:
        said = orjson.loads(headers["x-fairlead-principal"])
        kind, principal_id, scopes = said["kind"], said.get("id"), said.get("scopes", [])
        if kind not in PRINCIPAL_KINDS or not isinstance(principal_id, str | None):
            raise ValueError("no principal")
        principal = Principal(kind, principal_id, frozenset(str(scope) for scope in scopes))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Forbidden("The request does not say for whom it comes.") from None
    return Caller(
        principal=principal,
        peer=headers.get("x-fairlead-peer", b"unknown").decode("latin-1"),
        request_id=request_id or "unknown",
        scheme=headers.get("x-fairlead-scheme", b"http").decode("latin-1"),
        host=headers.get("x-fairlead-host", b"").decode("latin-1") or None,
    )


async def _refuse(
    error: FairleadError, request_id: str | None, scope: Scope, receive: Receive, send: Send
) -> None:
    await error_response(error, request_id, scope["path"], scope["method"])(scope, receive, send)
