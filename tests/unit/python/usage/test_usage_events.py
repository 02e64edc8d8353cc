"""Limits that are met and combos that switch, as events of settled records."""

from __future__ import annotations

from typing import Any

import polars as pl

from fairlead.events import CATALOGUE
from fairlead.usage.budgets.usage_events import usage_events

COMBOS = {"fast": ("fast", "priority"), "combo/fast": ("fast", "priority"), "p": ("p", "fusion")}


def row(request_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "request_id": request_id,
        "ts_ms": 7_200_000,
        "key_id": "k",
        "model": "fast",
        "upstream_model": "m",
        "provider": "n",
        "connection_id": "c",
        "attempts": 1,
        "outcome": "completed",
        "error_kind": None,
        "no_log": False,
        **fields,
    }


def told(*rows: dict[str, Any]) -> list[tuple[str, dict[str, Any], str | None]]:
    events = usage_events(pl.DataFrame(rows, infer_schema_length=None), COMBOS, {"k": "laptop"})
    found = [(each.name, dict(each.data), each.id) for each in events]
    for name, data, _ in found:
        assert set(data) == set(CATALOGUE["gateway"][name].data)
    return found


def test_an_answer_from_another_target_than_the_first_is_told_of() -> None:
    switched = told(
        row("1"),
        row("2", attempts=2),
        row("3", attempts=2, outcome="upstream_failed"),
        row("4", attempts=3, model="combo/fast"),
        row("5", attempts=3, model="openai/gpt"),
        row("6", attempts=4, model="p"),
        row("7", attempts=2, model="auto/cheap"),
        row("8", attempts=2, no_log=True),
    )
    assert [(name, data["requestId"], data["combo"]) for name, data, _ in switched] == [
        ("combo.switched", "2", "fast"),
        ("combo.switched", "4", "fast"),
        ("combo.switched", "7", "auto/cheap"),
    ]


def test_a_key_that_goes_on_asking_is_told_of_once_an_hour() -> None:
    refused = {"outcome": "refused", "attempts": 0}
    first = told(
        row("1", error_kind="budget_exceeded", **refused),
        row("2", error_kind="budget_exceeded", **refused),
        row("3", error_kind="rate_limited", **refused),
        row("4", error_kind="rate_limited", key_id=None, **refused),
        row("5", error_kind="invalid_request", **refused),
    )
    assert [(name, data["reason"], data["name"]) for name, data, _ in first] == [
        ("quota.exceeded", "budget_exceeded", "laptop"),
        ("quota.exceeded", "rate_limited", "laptop"),
    ]
    (again,) = told(row("9", error_kind="budget_exceeded", **refused))
    assert again[2] == first[0][2], "the outbox takes an id once"
    (later,) = told(row("9", ts_ms=10_800_000, error_kind="budget_exceeded", **refused))
    assert later[2] != first[0][2]
