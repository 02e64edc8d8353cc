"""The table of the board's operations against the route table of the relay, the tools and the pages' forms."""

from __future__ import annotations

import re

from fairlead import _core
from fairlead.board import pages
from fairlead.board.operations import OPERATIONS
from fairlead.board.tools import TOOLS
from fairlead.control.openapi import shape


def test_the_table_has_the_routes_that_the_relay_lets_through() -> None:
    relay = {
        (route["method"], shape(route["path"]))
        for route in _core.routes()
        if str(route["path"]).startswith("/api/board/")
    }
    table = [
        (each.route.method, f"/api/board{shape(each.route.path)}")
        for each in OPERATIONS
        if each.route is not None
    ]

    assert set(table) == relay
    assert len(table) == len(relay) == 26


def test_every_operation_is_a_tool_and_only_the_kanban_has_no_route() -> None:
    assert [tool.name for tool in TOOLS] == [each.name for each in OPERATIONS]
    assert [each.name for each in OPERATIONS if each.route is None] == ["board_get"]


def test_hints_fit_the_methods_of_the_routes() -> None:
    for each in OPERATIONS:
        method = each.route.method if each.route is not None else "GET"
        assert each.reads is (method == "GET"), each.name
        assert each.destroys is (method == "DELETE"), each.name
        assert each.repeats is (method == "PATCH" or each.name == "todos_move"), each.name


def test_the_path_of_a_route_names_the_id_that_its_function_takes() -> None:
    for each in OPERATIONS:
        if each.route is not None:
            ids = re.findall(r"\{(\w+)\}", each.route.path)
            assert ids == [name for name in each.parameters if name.endswith("_id")], each.name


def test_the_pages_have_a_form_for_each_operation_that_says_so() -> None:
    templates = (pages.HERE / "templates").glob("*.html")
    text = "".join(each.read_text("utf-8") for each in templates)
    asked = set(re.findall(r'\bact\("(\w+)"', text))

    assert {each.function.__name__ for each in OPERATIONS if each.form is not None} == asked - {
        "create_token",
        "revoke_token",
    }
