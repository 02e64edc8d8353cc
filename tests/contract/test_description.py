"""What is written about the API is what the code says: route table, OpenAPI, settings, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI
from jsonschema import Draft202012Validator

from fairlead import _core, errors
from fairlead.coding_tools.reference import tools_reference
from fairlead.control.api_reference import api_reference
from fairlead.control.app import routed_app
from fairlead.control.openapi import TIERS, openapi_document, shape
from fairlead.control.scopes_reference import scopes_reference
from fairlead.control.settings_reference import settings_reference
from fairlead.errors import KINDS
from fairlead.gateway.providers.reference import provider_reference

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


# Each is made of every route and model there is, which takes seconds.
@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document(routed_app())


@pytest.fixture(scope="module")
def api_page() -> str:
    return api_reference()


def test_control_serves_what_the_route_table_says_and_nothing_else() -> None:
    table = {
        (route["method"], shape(route["path"]))
        for route in _core.routes()
        if route["answered_by"] == "control"
    }
    served = {
        (method.upper(), shape(path))
        for path, operations in routed_app().openapi()["paths"].items()
        for method in operations
    }
    assert served == table


def test_the_document_names_every_route_with_its_tier(document: dict[str, Any]) -> None:
    paths = document["paths"]
    described = {
        (method.upper(), shape(path)): (
            operation["x-fairlead-tier"],
            operation["security"],
            set(operation["responses"]) & {"422", "default"},
        )
        for path, operations in paths.items()
        for method, operation in operations.items()
    }
    assert described == {
        (route["method"], shape(route["path"])): (
            route["tier"],
            TIERS[route["tier"]],
            {"default"},
        )
        for route in _core.routes()
    }
    ids = [operation["operationId"] for o in paths.values() for operation in o.values()]
    assert len(ids) == len(set(ids))


def test_every_reference_in_the_document_leads_somewhere(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in document["components"]["schemas"]


def test_the_committed_copies_are_fresh(api_page: str) -> None:
    """`make reference` writes them."""
    api = (REFERENCE / "api.md").read_text(encoding="utf-8")
    assert api == api_page
    providers = (REFERENCE / "providers.md").read_text(encoding="utf-8")
    assert providers == provider_reference()
    settings = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    assert settings == settings_reference()
    scopes = (REFERENCE / "scopes.md").read_text(encoding="utf-8")
    assert scopes == scopes_reference()
    tools = (REFERENCE / "tools-for-coding.md").read_text(encoding="utf-8")
    assert tools == tools_reference()


@pytest.mark.anyio
async def test_the_served_document_is_the_one_that_the_code_makes(control, document) -> None:
    served = (await control.client.get("/api/openapi.json")).json()
    assert served == json.loads(json.dumps(document))


def test_the_document_is_a_valid_description(document: dict[str, Any]) -> None:
    """As FastAPI's own models of OpenAPI and the schemas of JSON Schema 2020-12 have it."""
    OpenAPI.model_validate(document)
    assert document["openapi"].startswith("3.1.")
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_the_reference_page_names_every_route(api_page: str) -> None:
    headings = {
        tuple(line.removeprefix("### ").split(" "))
        for line in api_page.splitlines()
        if line.startswith("### ") and "/" in line
    }
    assert {(method, shape(path)) for method, path in headings} == {
        (route["method"], shape(route["path"])) for route in _core.routes()
    }


def test_both_planes_know_the_same_kinds_of_error() -> None:
    assert {kind["kind"]: (kind["status"], kind["type"]) for kind in _core.error_kinds()} == {
        name: (kind.status, kind.type) for name, kind in KINDS.items()
    }


def test_every_kind_has_its_heading_in_the_reference_and_its_place_in_the_tree() -> None:
    page = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    headings = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert headings == list(KINDS)
    for name, kind in KINDS.items():
        section = page.split(f"## {name}\n\n")[1]
        assert section.startswith(f"{kind.status}. ")
        assert f"+-- {kind.__name__} " in (errors.__doc__ or "")
