"""Shared parts of Google's API: routes of each version, names in either case, errors as
`google.rpc.Status`, type names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from fastapi import APIRouter

from fairlead import _core
from fairlead.errors import InvalidRequest
from fairlead.wire import NamedWire

TYPES: Final = "type.googleapis.com/google.ai.generativelanguage.v1beta."

# Codes of `google.rpc.Code`.
CANCELLED: Final = 1
UNKNOWN: Final = 2
INVALID_ARGUMENT: Final = 3
DEADLINE_EXCEEDED: Final = 4
INTERNAL: Final = 13

_OF_STATUS: Final = {
    400: INVALID_ARGUMENT,
    401: 16,
    403: 7,
    404: 5,
    408: DEADLINE_EXCEEDED,
    409: 10,
    429: 8,
    499: CANCELLED,
    501: 12,
    503: 14,
    504: DEADLINE_EXCEEDED,
}


GoogleRoute: TypeAlias = tuple[str, str, Callable[..., Any], str, str]
"""Method, path after the version, handler, name of the operation, summary."""


def google_router(tag: str, routes: tuple[GoogleRoute, ...]) -> APIRouter:
    """A router of the routes under `/v1` and `/v1beta`."""
    router = APIRouter(tags=[tag])
    for version in ("v1", "v1beta"):
        for method, path, act, name, summary in routes:
            router.add_api_route(
                f"/{version}{path}",
                act,
                methods=[method],
                name=f"{version}_{name}",
                operation_id=f"{version}_{name}",
                summary=summary,
            )
    return router


class GoogleWire(NamedWire):
    """A body of Google's: each member in camelCase or snake_case, as its clients send it."""


def rpc_code(status: int) -> int:
    """The `google.rpc.Code` for an HTTP status."""
    if status in _OF_STATUS:
        return _OF_STATUS[status]
    if 400 <= status < 500:
        return INVALID_ARGUMENT
    return INTERNAL if status >= 500 else UNKNOWN


def rpc_error(code: int, message: str) -> dict[str, Any]:
    """A `google.rpc.Status` object."""
    return {"code": code, "message": message}


def bare_model(name: str) -> str:
    """A model's name without the prefix `models/`."""
    return _core.model_without_folder(name)


def named_model(name: str) -> str:
    """The model that an address names, without a prefix; `InvalidRequest` says which rule it
    breaks.
    """
    try:
        return _core.canonical_model(bare_model(name))
    except ValueError as fault:
        raise InvalidRequest(f"`model` {fault}.", param="model") from None
