"""The API as an OpenAPI document, generated from the routers and the route table.

Served at `/api/openapi.json`; `api_reference.py` renders the reference page from it.
"""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from fairlead import __version__, _core

DESCRIPTION = (
    "One address for AI traffic. Paths under `/v1` are inference and speak the error shape of OpenAI; "
    "paths under `/api` are management. The kinds of error are in the error reference."
)

SCHEMES: dict[str, Any] = {
    "key": {"type": "http", "scheme": "bearer", "description": "A gateway API key, `sk-fl-...`."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "auth_token",
        "description": "Set by signing in.",
    },
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A management access token, `flm_...`: `read` reads, `write` changes, "
        "`admin` changes settings too.",
    },
    "local": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Gateway-Cli-Token",
        "description": "The local command-line token, from this machine only.",
    },
}

SCHEMES["scraping"] = {
    "type": "apiKey",
    "in": "header",
    "name": "X-API-Key",
    "description": "A gateway API key, `sk-fl-...`.",
}

# The credentials that each tier accepts, as alternatives.
TIERS: dict[str, list[dict[str, list[str]]]] = {
    "public": [],
    "inference": [{"key": []}, {}],
    "management": [{"session": []}, {"local": []}, {"token": []}, {"key": ["manage"]}],
    "admin": [{"session": []}, {"local": []}, {"token": ["admin"]}, {"key": ["manage"]}],
    "session": [{"session": []}, {"local": []}],
    "account": [{"session": []}, {"local": []}],
    "key": [{"scraping": []}],
    # Routes that document their credential themselves.
    "delegated": [],
}

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error", "requestId"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code", "param"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "code": {
                    "type": "string",
                    "description": "The kind of error, see the error reference.",
                },
                "param": {"type": ["string", "null"], "description": "The field that is wrong."},
            },
        },
        "requestId": {"type": ["string", "null"]},
    },
}

ERROR_RESPONSE: dict[str, Any] = {
    "description": "Any error",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The whole document: control's routes from FastAPI, the relay's from the route table."""
    document = get_openapi(
        title="fairlead", version=__version__, description=DESCRIPTION, routes=app.routes
    )
    paths: dict[str, Any] = document["paths"]
    # The table and the routers may name path parameters differently.
    named = {shape(path): path for path in paths}
    for route in _core.routes():
        path = str(route["path"]).replace("{*", "{")
        operations = paths.setdefault(named.get(shape(path), path), {})
        method = str(route["method"]).lower()
        if route["answered_by"] == "relay":
            operations[method] = _relay_operation(path, method, route)
        operation = operations.get(method)
        if operation is None:
            continue
        operation["security"] = TIERS[str(route["tier"])]
        operation["x-fairlead-tier"] = route["tier"]
        operation["responses"].pop("422", None)
        operation["responses"].setdefault("default", ERROR_RESPONSE)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = ERROR_SCHEMA
    document["components"]["securitySchemes"] = SCHEMES
    return document


def shape(path: str) -> str:
    """The path without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def _relay_operation(path: str, method: str, route: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{method}_{re.sub('[^a-z0-9]+', '_', path).strip('_')}",
        "summary": str(route["summary"]).rstrip("."),
        "tags": [str(route["endpoint"])],
        "responses": {"200": {"description": "Success"}},
    }
    if "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    if method == "post":
        operation["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {"schema": {"type": "object", "additionalProperties": True}}
            },
        }
    return operation
