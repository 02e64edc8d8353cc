"""The scraping API as an OpenAPI document, made from the same models that hold requests to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

VERSION: Final = "1.0.0"
OPENAPI: Final = "3.0.0"

_ERRORS: Final = {
    "400": "The request is invalid, or the page was not read.",
    "401": "The API key is missing or invalid.",
    "404": "Nothing is known under this id.",
    "429": "A limit was reached.",
}
_ENVELOPES: Final[dict[str, Any]] = {
    "Success": {
        "type": "object",
        "required": ["success"],
        "properties": {"success": {"type": "boolean", "enum": [True]}},
        "additionalProperties": True,
    },
    "Error": {
        "type": "object",
        "required": ["success", "error"],
        "properties": {
            "success": {"type": "boolean", "enum": [False]},
            "error": {"type": "string"},
        },
        "additionalProperties": True,
    },
    "Accepted": {
        "type": "object",
        "required": ["success", "id", "url", "status"],
        "properties": {
            "success": {"type": "boolean", "enum": [True]},
            "id": {"type": "string"},
            "url": {"type": "string"},
            "status": {"type": "string"},
        },
        "additionalProperties": True,
    },
}
_OTHER_THAN_JSON: Final = ("/stream", "/openapi.json", "/zip", "/download", "/reader")
_ACCEPTING: Final = frozenset(
    [
        "/api/scrape/async",
        "/api/crawl",
        "/api/batch/scrape",
        "/api/llmstxt",
        "/api/extract",
        "/api/agent",
    ]
)


def scraping_document(routers: Iterable[APIRouter]) -> dict[str, Any]:
    """The OpenAPI 3.0.0 document of these routers, description version 1.0.0."""
    app = FastAPI()
    for router in routers:
        app.include_router(router)
    document: dict[str, Any] = get_openapi(
        title="fairlead scraping API",
        version=VERSION,
        openapi_version="3.0.3",
        description="Scrape, crawl, map, search, extract and summarize web pages.",
        routes=app.routes,
    )
    document["openapi"] = OPENAPI
    document = _in_3_0(document)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas.update(copy.deepcopy(_ENVELOPES))
    document["components"]["securitySchemes"] = {
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"}
    }
    document["security"] = [{"apiKey": []}]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _answers(operation, path, method)
    return document


def scraping_text(routers: Iterable[APIRouter]) -> str:
    """The document as it is served and committed: indented JSON with sorted names."""
    document = scraping_document(routers)
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _answers(operation: dict[str, Any], path: str, method: str) -> None:
    answers: dict[str, Any] = operation["responses"]
    answers.pop("422", None)
    for status, answer in answers.items():
        if status.startswith("2") and not path.endswith(_OTHER_THAN_JSON):
            name = "Accepted" if method == "post" and path in _ACCEPTING else "Success"
            answer["content"] = _json(name)
        elif not status.startswith("2"):
            answer["content"] = _json("Error")
    for status, text in _ERRORS.items():
        if status == "404" and "{" not in path:
            continue
        answers[status] = {"description": text, "content": _json("Error")}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _in_3_0(value: Any) -> Any:
    """Schemas of JSON Schema 2020-12 as OpenAPI 3.0 has them: `nullable`, one bound with a flag."""
    if isinstance(value, list):
        return [_in_3_0(each) for each in value]
    if not isinstance(value, dict):
        return value
    out = {name: _in_3_0(each) for name, each in value.items()}
    for name in ("anyOf", "oneOf"):
        options = out.get(name)
        if isinstance(options, list) and {"type": "null"} in options:
            rest = [each for each in options if each != {"type": "null"}]
            out.pop(name)
            out["nullable"] = True
            if len(rest) == 1 and "$ref" in rest[0]:
                out["allOf"] = rest
            elif len(rest) == 1:
                out = {**rest[0], **out}
            else:
                out[name] = rest
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(out.get(exclusive), int | float) and not isinstance(out[exclusive], bool):
            out[bound] = out.pop(exclusive)
            out[exclusive] = True
    if "const" in out and not isinstance(out["const"], dict):
        out["enum"] = [out.pop("const")]
    if isinstance(out.get("propertyNames"), dict):
        del out["propertyNames"]
    return out
