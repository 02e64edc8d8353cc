"""Error responses of the management surface: `{"error": {message, type, code, param}, "requestId"}`."""

from __future__ import annotations

import re
from functools import cache

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fairlead import _core
from fairlead.calls.caller import caller_of
from fairlead.errors import (
    FairleadError,
    Internal,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
)
from fairlead.text.invalid import faults, invalid_request


# Many parameters: the facts of a request that choose the shape of its error.
def error_response(
    error: FairleadError,
    request_id: str | None,
    path: str | None = None,
    method: str | None = None,
    sent: object = None,
    *,
    is_anthropic: bool = False,
) -> Response:
    """The response for an error, in the error shape of the surface that the path and method belong to.

    `sent` is the body of the request, if it was read. `is_anthropic`: the caller's API is Anthropic's, which has routes
    at addresses that are OpenAI's too.
    """
    body: dict[str, object] = (
        _task_body(error, path, sent)
        if path is not None and error.status in _BAD_INPUT and path.startswith(_TASKS)
        else {"success": False, "error": error.message, **error.extra}
        if path is not None and is_scraping(path, method)
        else _oauth_body(error)
        if path is not None and path.startswith("/oauth/")
        else _gemini_body(error)
        if path is not None and _routes_of("gemini", None).fullmatch(path) is not None
        else _anthropic_body(error, request_id)
        if path is not None and _is_anthropic(path, has_version=is_anthropic)
        else {
            "error": {
                "message": error.message,
                "type": error.type,
                "code": error.kind,
                "param": error.param,
            },
            "requestId": request_id,
            **error.extra,
        }
    )
    headers = {"cache-control": "no-store", **error.headers}
    if path is not None and path.startswith("/oauth/"):
        headers["pragma"] = "no-cache"
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    return Response(orjson.dumps(body), error.status, headers, "application/json")


_TASKS = "/api/tasks/"
_BAD_INPUT = frozenset({400, 413, 415})


def _task_body(error: FairleadError, path: str, sent: object) -> dict[str, object]:
    """Spec 3, C: agents read one envelope, whatever was wrong with the call."""
    from fairlead.tasks.tools import refused  # noqa: PLC0415 - most processes never need the tools

    envelope = refused(path.removeprefix(_TASKS), sent, error.message)
    return envelope.model_dump(mode="json", by_alias=True)


# Sent with every request of Anthropic's API.
ANTHROPIC_VERSION = "anthropic-version"
# Google's canonical error codes, which the relay uses too.
_GEMINI_STATUS = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def _gemini_body(error: FairleadError) -> dict[str, object]:
    status = _GEMINI_STATUS.get(error.status, "INVALID_ARGUMENT")
    if error.status >= 500 and error.status not in _GEMINI_STATUS:
        status = "INTERNAL"
    return {"error": {"code": error.status, "message": error.message, "status": status}}


def _anthropic_body(error: FairleadError, request_id: str | None) -> dict[str, object]:
    kind = _core.anthropic_error_type(error.status)
    fault = {"type": kind, "message": error.message}
    return {"type": "error", "error": fault, "request_id": request_id}


def _oauth_body(error: FairleadError) -> dict[str, object]:
    code = "server_error" if error.status >= 500 else "invalid_request"
    if error.status == 503:
        code = "temporarily_unavailable"
    return {"error": code, "error_description": re.sub(r'["\\]', "'", error.message)}


def _is_anthropic(path: str, *, has_version: bool) -> bool:
    is_shared = has_version and (path == "/v1/files" or path.startswith("/v1/files/"))
    return is_shared or _routes_of("anthropic", None).fullmatch(path) is not None


def is_scraping(path: str, method: str | None = None) -> bool:
    """Whether the path belongs to the scraping API, which has its own error shape. The method distinguishes
    paths that two surfaces share.
    """
    if method is not None and _routes_of("management", method).fullmatch(path) is not None:
        return False
    return _routes_of("scraping", None).fullmatch(path) is not None


@cache
def _routes_of(surface: str, method: str | None) -> re.Pattern[str]:
    paths = {
        str(route["path"])
        for route in _core.routes()
        if route["surface"] == surface and method in (None, route["method"])
    }
    return re.compile("|".join(path_pattern(path) for path in paths))


def path_pattern(path: str) -> str:
    """A regular expression for a path of the route table."""
    several = re.sub(r"\\{\\\*[^}]*\\}", ".+", re.escape(path))
    return re.sub(r"\\{[^}]*\\}", "[^/]+", several)


def install_handlers(app: FastAPI) -> None:
    """Installs handlers that answer every expected error in this shape; the gate handles the unexpected ones."""

    async def on_fairlead(request: Request, error: FairleadError) -> Response:
        return error_response(
            error,
            caller_of(request).request_id,
            request.url.path,
            request.method,
            is_anthropic=ANTHROPIC_VERSION in request.headers,
        )

    async def on_invalid(request: Request, error: RequestValidationError) -> Response:
        refusal = invalid_request(error.errors())
        if is_scraping(request.url.path, request.method):
            refusal.extra["details"] = faults(error.errors())
        return error_response(
            refusal,
            caller_of(request).request_id,
            request.url.path,
            request.method,
            error.body,
            is_anthropic=ANTHROPIC_VERSION in request.headers,
        )

    async def on_http(request: Request, error: HTTPException) -> Response:
        answer = error_response(
            _of_status(error.status_code), caller_of(request).request_id, request.url.path
        )
        if error.headers:
            answer.headers.update(error.headers)
        return answer

    # Each handler gets only the error it is registered for, but Starlette's annotation says any exception.
    app.add_exception_handler(FairleadError, on_fairlead)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, on_invalid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, on_http)  # type: ignore[arg-type]


def _of_status(status: int) -> FairleadError:
    if status == 404:
        return NotFound("There is nothing at this path.")
    if status == 405:
        return MethodNotAllowed("This path does not take this method.")
    if 400 <= status < 500:
        return InvalidRequest("The request cannot be read.")
    return Internal("The request failed.")
