"""Every management route that takes a body refuses what is not one, in the one shape of errors, and changes nothing;
and what is odd and allowed is served or refused as well.

The routes and their schemas come from the API's own description, so that a route that is added later is tried too.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from fairlead.control.app import routed_app
from fairlead.control.openapi import openapi_document
from fairlead.errors import KINDS
from tests.contract.conftest import Control

# It asks thousands of times.
pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(600)]

# Types, bounds and letters that a field may not want; those that its schema allows are not sent.
CANDIDATES: Final = (
    {"no": {"such": "thing"}},
    [[]],
    [5, None],
    True,
    -1,
    2**70,
    0.5,
    "",
    "x\u0000y",
    "x" * 70_000,
)
# What a schema may well allow and a program still trips over: nothing, letters that no text may have, bounds of
# integers, text that is turned around, and nesting.
ODD: Final = (
    None,
    "",
    "\ud800",
    "x\u0000y",
    "\u202e\u2066x",
    "\U0001f600" * 5_000,
    2**53 + 1,
    2**63,
    1e308,
    [],
    {},
    *(json.loads("[" * depth + "]" * depth) for depth in (300, 900)),
)
ODD_IN_PLACES: Final = (
    "%00",
    "%ff%fe",
    "..%2f..%2fetc",
    "%22%3Cb%3E",
    "-1",
    "9" * 23,
    "%0d%0aX-A:1",
)
ODD_IN_QUERIES: Final = (
    *ODD_IN_PLACES,
    "",
    "1e999",
    "NaN",
    "2026-13-45",
    "99999-01-01",
    "%ed%a0%80",
)
# Who is let in, and when, is another question.
TIERS: Final = {"management", "admin", "session", "account"}


@functools.cache
def _document() -> dict[str, Any]:
    return openapi_document(routed_app())


def _validator(schema: Any) -> Draft202012Validator:
    """Of the schema, with the whole document's definitions behind its references."""
    return Draft202012Validator({**schema, "components": _document()["components"]})


def _resolved(schema: Any) -> Any:
    while "$ref" in schema:
        node: Any = _document()
        for part in schema["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    return schema


def _routes() -> Iterator[tuple[str, str, Any]]:
    for path, operations in _document()["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            if operation["x-fairlead-tier"] in TIERS and "application/json" in content:
                yield method.upper(), path, content["application/json"]["schema"]


def _reads() -> Iterator[tuple[str, Any]]:
    for path, operations in _document()["paths"].items():
        operation = operations.get("get")
        # A stream of events goes on until its reader leaves.
        if operation and operation["x-fairlead-tier"] in TIERS and not _is_stream(operation):
            yield path, operation


def _is_stream(operation: Any) -> bool:
    answers = operation.get("responses", {}).values()
    return any("text/event-stream" in answer.get("content", {}) for answer in answers)


def _bad_bodies(schema: Any) -> Iterator[Any]:
    """What the schema does not allow, each wrong in one way."""
    validator = _validator(schema)
    yield from (body for body in ([], [1], "text", 5, True) if not validator.is_valid(body))
    unknown = {"noSuchField": 1}
    if not validator.is_valid(unknown):
        yield unknown
    for name, field in _resolved(schema).get("properties", {}).items():
        own = _validator(field)
        wrong = [each for each in CANDIDATES if not own.is_valid(each)]
        # Of a type that it has not, and out of its bounds.
        yield from (
            {name: each} for each in {id(each): each for each in (wrong[:1] + wrong[-1:])}.values()
        )


def _fault(status: int, text: str) -> str | None:
    """Why this is no refusal in the one shape."""
    if status not in (400, 404, 409):
        return f"status {status}"
    error = json.loads(text).get("error")
    if not isinstance(error, dict) or error.get("code") not in KINDS or not error.get("message"):
        return "no error in the one shape"
    return None


async def _content(control: Control) -> dict[str, list[Any]]:
    """Every row of the state, but for who asked, and what control notes by the clock."""
    services = control.app.state.services

    def read(con: Any) -> dict[str, list[Any]]:
        tables = con.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
        ).fetchall()
        passing = {"meta", "owner_bytes"}
        named = [
            f'"{schema}"."{table}"'
            for schema, table in tables
            if "audit" not in table and table not in passing
        ]
        return {
            each: con.execute(f"SELECT * FROM {each} ORDER BY ALL").fetchall() for each in named
        }

    return await services.state.read(read)


async def test_every_route_refuses_what_is_no_body_and_changes_nothing(control: Control) -> None:
    before = await _content(control)
    faults: list[str] = []
    tried = 0
    for method, path, schema in _routes():
        for body in _bad_bodies(schema):
            place = path.replace("{", "").replace("}", "")
            answer = await control.client.request(method, place, json=body)
            tried += 1
            if (why := _fault(answer.status_code, answer.text)) is not None:
                faults.append(f"{method} {path} {json.dumps(body)[:80]}: {why} {answer.text[:120]}")
    assert faults == []
    assert tried > 1_500
    assert await _content(control) == before


async def test_nothing_odd_is_a_defect(control: Control) -> None:
    """Values that a schema allows, and letters in paths and queries that no schema sees, are served or refused."""
    faults: list[str] = []
    tried = 0

    async def ask(method: str, place: str, content: str | None = None) -> None:
        nonlocal tried
        headers = {"content-type": "application/json"} if content is not None else {}
        answer = await control.client.request(method, place, content=content, headers=headers)
        tried += 1
        if answer.status_code == 500:
            faults.append(f"{method} {place[:80]} {(content or '')[:80]}: {answer.text[:120]}")

    for method, path, schema in _routes():
        for name, field in _resolved(schema).get("properties", {}).items():
            own = _validator(field)
            for odd in (each for each in ODD if own.is_valid(each)):
                await ask(method, path.replace("{", "").replace("}", ""), json.dumps({name: odd}))
        for depth in (900, 1_000, 100_000):
            body = '{"name": ' + "[" * depth + "]" * depth + "}"
            await ask(method, path.replace("{", "").replace("}", ""), body)
    for path, operation in _reads():
        for odd in ODD_IN_PLACES if "{" in path else ():
            await ask("GET", re.sub(r"\{[^}]*\}", odd, path))
        for parameter in operation.get("parameters", []):
            for odd in ODD_IN_QUERIES if parameter["in"] == "query" else ():
                place = path.replace("{", "").replace("}", "")
                await ask("GET", f"{place}?{parameter['name']}={odd}")
    assert faults == []
    assert tried > 2_000
