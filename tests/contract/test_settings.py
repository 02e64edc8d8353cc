"""`/api/settings`: typed values, defaults, and a revision that shows a lost update."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio

PATH = "/api/settings"


async def test_a_change_keeps_what_is_not_sent_and_counts_up(control) -> None:
    client = control.client
    defaults = (await client.get(PATH)).json()
    assert (defaults["usageRetentionDays"], defaults["settingsRevision"]) == (90, 0)
    changed = await client.patch(PATH, json={"usageRetentionDays": 30, "settingsRevision": 0})
    assert changed.json() == {**defaults, "usageRetentionDays": 30, "settingsRevision": 1}
    assert (await client.get(PATH)).json() == changed.json()
    replaced = await client.put(PATH, json={"usageRetentionDays": 7})
    assert replaced.json() == {**defaults, "usageRetentionDays": 7, "settingsRevision": 2}


async def test_a_change_on_an_old_revision_is_a_conflict(control) -> None:
    await control.client.patch(PATH, json={"usageRetentionDays": 30})
    answer = await control.client.patch(
        PATH, json={"usageRetentionDays": 10, "settingsRevision": 0}
    )
    assert (answer.status_code, answer.json()["error"]["param"]) == (409, "settingsRevision")
    assert (await control.client.get(PATH)).json()["usageRetentionDays"] == 30


async def test_strategies_of_accounts_are_kept_for_providers_that_are_there(control) -> None:
    chosen = {"accountStrategy": "least-used", "accountStrategies": {"openai": "sticky"}}
    changed = (await control.client.patch(PATH, json=chosen)).json()
    assert {name: changed[name] for name in chosen} == chosen
    cleared = (await control.client.patch(PATH, json={"accountStrategies": {}})).json()
    assert (cleared["accountStrategy"], cleared["accountStrategies"]) == ("least-used", {})


WRONG = [
    ({}, "usageRetentionDays"),
    ({"settingsRevision": 0}, "usageRetentionDays"),
    ({"colour": "red"}, "colour"),
    ({"usageRetentionDays": 1, "colour": "red"}, "colour"),
    ({"usageRetentionDays": 0}, "usageRetentionDays"),
    ({"usageRetentionDays": 3651}, "usageRetentionDays"),
    ({"usageRetentionDays": 10**30}, "usageRetentionDays"),
    ({"usageRetentionDays": "90"}, "usageRetentionDays"),
    ({"usageRetentionDays": True}, "usageRetentionDays"),
    ({"usageRetentionDays": None}, "usageRetentionDays"),
    ({"usageRetentionDays": 1, "settingsRevision": "0"}, "settingsRevision"),
    ({"accountStrategy": "best"}, "accountStrategy"),
    ({"accountStrategies": {"openai": "best"}}, "accountStrategies"),
    ({"accountStrategies": {"": "p2c"}}, "accountStrategies"),
    ({"accountStrategies": {"nobody": "p2c"}}, "`nobody`"),
    ({"accountStrategies": ["p2c"]}, "accountStrategies"),
]


async def test_a_wrong_body_is_refused_by_name(control) -> None:
    for method in ("PATCH", "PUT"):
        for body, named in WRONG:
            answer = await control.client.request(method, PATH, json=body)
            assert answer.status_code == 400, body
            assert named in answer.json()["error"]["message"]
    assert (await control.client.get(PATH)).json()["settingsRevision"] == 0
