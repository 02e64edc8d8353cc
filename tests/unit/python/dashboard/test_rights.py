"""Who may call what from a page: what the relay would decide for a caller with pages, and nothing for others."""

from __future__ import annotations

import re

import pytest

from fairlead import _core
from fairlead.calls.caller import Principal
from fairlead.dashboard.api import may_call

ROUTES = [
    (str(route["method"]), re.sub(r"\{[^}]*\}", "x1", str(route["path"])), str(route["tier"]))
    for route in _core.routes()
    if route["surface"] == "management" and route["answered_by"] == "control"
]
OTHERS = [
    (str(route["method"]), re.sub(r"\{[^}]*\}", "x1", str(route["path"])))
    for route in _core.routes()
    if route["surface"] != "management"
]
MANAGES = frozenset({"management", "admin", "session", "account", "public"})
MEMBER = frozenset({"account", "public"})


@pytest.mark.parametrize(
    ("principal", "tiers"),
    [
        (Principal("local"), MANAGES),
        (Principal("session", "u", frozenset({"manage"})), MANAGES),
        (Principal("session", "u"), MEMBER),
        (Principal("anonymous"), frozenset()),
        (Principal("key", "k", frozenset({"manage", "admin"})), frozenset()),
        (Principal("token", "t", frozenset({"admin"})), frozenset()),
    ],
)
def test_a_page_may_call_what_its_visitor_may(principal: Principal, tiers: frozenset[str]) -> None:
    assert len(ROUTES) > 100
    wrong = [
        (method, path, tier)
        for method, path, tier in ROUTES
        if may_call(principal, method, path) != (tier in tiers)
    ]
    assert wrong == []
    assert not any(
        may_call(principal, "GET", path) for path in ("/nothing", "/api/keys/a/b", "/api")
    )


def test_no_page_calls_models_or_the_scraping_api() -> None:
    managing = {(method, path) for method, path, _ in ROUTES}
    shared = [
        each for each in OTHERS if may_call(Principal("local"), *each) and each not in managing
    ]
    assert shared == []
