"""The entry of the control plane: only the relay is admitted, and it states on whose behalf it asks.

Plain ASGI. A request without the link token is answered 403 unread. With it, the caller that the relay resolved
goes into the scope (`fairlead.calls.caller`), the body is read under a limit and validated, and every error is
answered in the management shape, an unexpected one as `internal` with the request's id.
"""

from __future__ import annotations

import asyncio
import hmac
import re

import orjson
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead import _core
from fairlead.calls.caller import PRINCIPAL_KINDS, SCOPE_KEY, Caller, Principal
from fairlead.control.answers import error_response, path_pattern
from fairlead.control.body import BODY_MAX_BYTES, LONG_BODY_BYTES, check_json, read_body, replay
from fairlead.control.link import LINK_PATH
from fairlead.control.logs import where
from fairlead.control.peoples_fields import refuse_programs
from fairlead.control.relay_nodes import REMOTE_KEY
from fairlead.control.workers import Workers
from fairlead.errors import FairleadError, Forbidden, Internal, StorageUnavailable
from fairlead.gateway.files.fill import FILL_PATH
from fairlead.gateway.responses.internal import (
    BEGIN_MAX_BYTES,
    BEGIN_PATH,
    CONTEXT_PATH,
    KEEP_PATH,
)
from fairlead.process.node_paths import BODIES_PATH, NODE_PATH, RESPONSES_PATH, SEGMENTS_PATH

REQUEST_DEADLINE_S = 60.0
UPLOAD_DEADLINE_S = 600.0
# Set by the relay beside the file of a form; it strips the header from callers.
FORM_HEADER = "x-fairlead-form"
# Marks a response that lasts as long as its reader; the relay removes the header.
LASTING = b"x-fairlead-lasting"
WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
FORMS = re.compile(
    "|".join(
        f"{route['method']} {path_pattern(str(route['path']))}"
        for route in _core.routes()
        if route["takes_form"]
    )
)
# Routes that accept a file in place of JSON.
FILES = re.compile(
    "|".join(
        f"{route['method']} {path_pattern(str(route['path']))}"
        for route in _core.routes()
        if route["body"] in {"file", "upload"}
    )
)
# The body limit of each route that takes more than a record.
LARGE_BODIES = {
    (route["method"], route["path"]): int(route["body_limit_bytes"])
    for route in _core.routes()
    if route["answered_by"] == "control" and route["body_limit_bytes"] > BODY_MAX_BYTES
}
# Paths whose packages read and validate their bodies.
DELEGATED = re.compile(
    "|".join(
        path_pattern(str(route["path"])) for route in _core.routes() if route["tier"] == "delegated"
    )
)
# Body limits of routes with path parameters, which cannot be looked up by path.
_NAMED = tuple(
    (re.compile(path_pattern(path)), method, limit)
    for (method, path), limit in LARGE_BODIES.items()
    if "{" in path
)

# Requests that the relay makes for itself, on no caller's behalf.
INTERNAL = frozenset(
    {
        LINK_PATH,
        KEEP_PATH,
        CONTEXT_PATH,
        FILL_PATH,
        NODE_PATH,
        SEGMENTS_PATH,
        BODIES_PATH,
        RESPONSES_PATH,
    }
)

log = structlog.get_logger("fairlead.control")


class Gate:
    """The outermost ASGI application of control."""

    def __init__(
        self, app: ASGIApp, link_token: str, workers: Workers, node_token: str | None = None
    ) -> None:
        self._app = app
        self._link_token = link_token.encode()
        # The relays on other machines.
        self._node_token = None if node_token is None else node_token.encode()
        self._workers = workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _own_headers(scope)
        shown = headers.get("x-fairlead-link", b"")
        is_remote = self._node_token is not None and hmac.compare_digest(shown, self._node_token)
        if not is_remote and not hmac.compare_digest(shown, self._link_token):
            await _refuse(
                Forbidden("Control accepts requests from the relay only."),
                None,
                scope,
                receive,
                send,
            )
            return
        scope[REMOTE_KEY] = is_remote
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
                # A stream without a deadline here; its handler bounds it.
                deadline.reschedule(None)
            await send(message)

        if worker_id := headers.get("x-fairlead-worker", b"").decode("latin-1"):
            self._workers.forwarded(worker_id)
        try:
            scope[SCOPE_KEY] = _caller(headers, request_id)
            async with asyncio.timeout(REQUEST_DEADLINE_S) as deadline:
                if FORM_HEADER in headers:
                    # An uploaded file, which its route reads as it arrives; the relay enforced the limit.
                    deadline.reschedule(asyncio.get_running_loop().time() + UPLOAD_DEADLINE_S)
                elif scope["method"] in WITH_BODY:
                    body = await read_body(receive, body_limit(scope["method"], scope["path"]))
                    if body and not is_unread(scope["method"], scope["path"], headers):
                        kind = headers.get("content-type", b"").decode("latin-1")
                        if len(body) > LONG_BODY_BYTES:
                            await asyncio.to_thread(check_json, body, kind)
                        else:
                            check_json(body, kind)
                        refuse_programs(
                            scope[SCOPE_KEY].principal, scope["method"], scope["path"], body
                        )
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
            # A part of the response was sent, so only a broken connection can show that it is incomplete.
            raise ConnectionAbortedError("the answer had begun")
        await _refuse(answer, request_id, scope, receive, send)


def body_limit(method: str, path: str) -> int:
    """The largest body of a request, in bytes."""
    if path == BEGIN_PATH:
        return BEGIN_MAX_BYTES
    if (most := LARGE_BODIES.get((method, path))) is not None:
        return most
    named = (limit for pattern, of, limit in _NAMED if of == method and pattern.fullmatch(path))
    return next(named, BODY_MAX_BYTES)


def is_unread(method: str, path: str, headers: dict[str, bytes]) -> bool:
    """Whether the body is passed on as it is, without validation as JSON."""
    is_octets = headers.get("content-type") == b"application/octet-stream"
    is_file = is_octets and FILES.fullmatch(f"{method} {path}") is not None
    return is_file or DELEGATED.fullmatch(path) is not None or is_form(method, path, headers)


def is_form(method: str, path: str, headers: dict[str, bytes]) -> bool:
    """Whether the body is a form that this page accepts; the relay checked the page's origin."""
    kind = headers.get("content-type", b"").partition(b";")[0].strip().lower()
    return (
        kind == b"application/x-www-form-urlencoded"
        and FORMS.fullmatch(f"{method} {path}") is not None
    )


def _is_stream(message: Message) -> bool:
    return any(
        name == LASTING or (name == b"content-type" and value.startswith(b"text/event-stream"))
        for name, value in message["headers"]
    )


def _own_headers(scope: Scope) -> dict[str, bytes]:
    # The relay strips these headers from callers, so each occurs at most once.
    return {
        name.decode("latin-1"): value
        for name, value in scope["headers"]
        if name.startswith(b"x-fairlead-") or name == b"content-type"
    }


def _caller(headers: dict[str, bytes], request_id: str | None) -> Caller:
    try:
        document = orjson.loads(headers["x-fairlead-principal"])
        kind, principal_id, scopes = (
            document["kind"],
            document.get("id"),
            document.get("scopes", []),
        )
        if kind not in PRINCIPAL_KINDS or not isinstance(principal_id, str | None):
            raise ValueError("no principal")
        principal = Principal(kind, principal_id, frozenset(str(scope) for scope in scopes))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Forbidden("The headers that name the caller are missing or invalid.") from None
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
