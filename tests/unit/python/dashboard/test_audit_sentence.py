"""Entries of the audit log as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.dashboard.audit_sentence import label_of, sentence_of


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
        ("POST", "/api/settings/mail", "Created mail server one"),
        ("POST", "/api/resilience/reset", "Reset circuit breakers one"),
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
    assert sentence_of(entry("POST", "/login")).words == "Signed in"
    changes = [
        {"field": "isActive", "before": True, "after": None},
        {"field": "url", "before": "a" * 100, "after": "b"},
        {"field": "models", "before": ["a"], "after": ["b"]},
    ]
    active, url, models = sentence_of(entry("PATCH", "/api/combos/{id}", changes=changes)).changes
    assert active == "is active: on → nothing"
    assert len(url) < 80
    assert models == "models"


def test_names_of_fields_become_words() -> None:
    assert label_of("dailyUsageLimitUsd") == "daily usage limit USD"
    assert label_of("backup_keep_count") == "backup keep count"
