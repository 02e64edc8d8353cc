"""Entries of the audit log as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.control.audit import ROUTES
from fairlead.dashboard.audit_sentence import label_of, sentence_of
from fairlead.dashboard.audit_words import ACTS


def entry(method: str, route: str, **fields: Any) -> dict[str, Any]:
    known = {"method": method, "route": route, "path": route, "sent": None, "before": None}
    return {**known, "changes": [], **fields}


@pytest.mark.parametrize(
    ("method", "route", "words"),
    [
        ("POST", "/api/keys", "Created key one"),
        ("PATCH", "/api/keys/{key_id}", "Changed key one"),
        ("DELETE", "/api/keys/{key_id}", "Deleted key one"),
        ("POST", "/api/keys/{key_id}/regenerate", "Rotated key one"),
        ("POST", "/api/providers/{connection_id}/test", "Tested connection one"),
        ("POST", "/api/webhooks/{id}/redeliver", "Sent a delivery again of webhook one"),
        ("POST", "/api/auth/tokens", "Created access token one"),
        ("POST", "/api/combos/{id}/duplicate", "Duplicated combo one"),
        ("POST", "/api/agent-skills", "Created agent one"),
    ],
)
def test_an_entry_says_what_was_done_to_what(method: str, route: str, words: str) -> None:
    assert sentence_of(entry(method, route, sent={"name": "one"})).words == words


def test_a_changed_setting_has_both_values() -> None:
    changes = [{"field": "scrapeRequestsPerMinute", "before": 600, "after": 50}]
    found = sentence_of(entry("PATCH", "/api/settings", changes=changes))
    assert found == ("Changed settings", ("scrape requests per minute: 600 → 50",))


def test_what_is_not_known_says_its_call_and_long_values_are_cut() -> None:
    assert sentence_of(entry("POST", "/api/brand-new")).words == "POST /api/brand-new"
    changes = [
        {"field": "isActive", "before": True, "after": None},
        {"field": "url", "before": "a" * 100, "after": "b"},
        {"field": "models", "before": ["a"], "after": ["b"]},
    ]
    active, url, models = sentence_of(entry("PATCH", "/api/combos/{id}", changes=changes)).changes
    assert active == "is active: on → nothing"
    assert len(url) < 80
    assert models == "models"


@pytest.mark.parametrize("route", ["/login", "/api/auth/login"])
def test_a_sign_in_names_the_address_and_whether_it_succeeded(route: str) -> None:
    sent = {"email": "ada@example.org", "password": "***"}
    done = entry("POST", route, sent=sent, outcome="done")
    refused = entry("POST", route, sent=sent, outcome="refused")
    assert sentence_of(done).words == "Signed in as ada@example.org"
    assert sentence_of(refused).words == "Failed to sign in as ada@example.org"
    assert sentence_of(entry("POST", route, outcome="done")).words == "Signed in"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_audited_route_has_a_sentence(route: Any) -> None:
    words = sentence_of(entry(route.method, route.path)).words
    assert "/" not in words, "a method and a path are no sentence"
    assert words[0].isupper()
    if words.startswith("Deleted"):
        assert route.method == "DELETE" or "purge" in route.path


def test_words_are_of_routes_that_there_are() -> None:
    known = {f"{route.method} {route.path}" for route in ROUTES}
    assert set(ACTS) <= known, "a route was renamed: rename it in audit_words.py"


def test_names_of_fields_become_words() -> None:
    assert label_of("dailyUsageLimitUsd") == "daily usage limit USD"
    assert label_of("backup_keep_count") == "backup keep count"
