"""`/api/usage/token-limits`: what may be set, what is shown, and what the relay gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.conftest import Control

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]
ROUTE = "/api/usage/token-limits"


async def make_key(control: Control, **fields: Any) -> dict[str, Any]:
    answer = await control.client.post("/api/keys", json={"name": "k", **fields})
    assert answer.status_code == 201
    key: dict[str, Any] = answer.json()
    return key


def compiled(control: Control, key: dict[str, Any]) -> list[dict[str, Any]]:
    (found,) = [one for one in control.snapshot()["keys"] if one["id"] == key["id"]]
    limits: list[dict[str, Any]] = found["limits"]
    return limits


async def test_a_limit_is_made_changed_shown_and_lifted(control: Control) -> None:
    key = await make_key(control)
    made = await control.client.post(ROUTE, json={"apiKeyId": key["id"], "tokenLimit": 1000})
    assert made.status_code == 201
    limit = made.json()
    assert (limit["scopeType"], limit["resetInterval"], limit["resetTime"], limit["enabled"]) == (
        "global",
        "monthly",
        "00:00",
        True,
    )
    assert (limit["tokensUsed"], limit["remaining"]) == (0, 1000)
    assert limit["windowStart"].endswith("-01T00:00:00.000Z")
    assert limit["windowStart"] < limit["nextResetAt"]
    assert compiled(control, key) == [
        {
            "id": limit["id"],
            "name": "tokenLimit",
            "unit": "tokens",
            "amount": 1000,
            "period": {"month": 0},
            "scope": "all",
        }
    ]

    change = {
        "id": limit["id"],
        "apiKeyId": key["id"],
        "scopeType": "model",
        "scopeValue": "openai/gpt-4o",
        "tokenLimit": 5,
        "resetInterval": "daily",
        "resetTime": "06:30",
    }
    changed = await control.client.post(ROUTE, json=change)
    assert changed.status_code == 200
    assert compiled(control, key)[0]["period"] == {"day": 390}
    assert compiled(control, key)[0]["scope"] == {"model": "openai/gpt-4o"}
    listed = (await control.client.get(ROUTE, params={"apiKeyId": key["id"]})).json()
    assert [one["tokenLimit"] for one in listed["limits"]] == [5]

    assert (await control.client.post(ROUTE, json=change | {"enabled": False})).status_code == 200
    assert compiled(control, key) == []
    assert (await control.client.delete(ROUTE, params={"id": limit["id"]})).status_code == 200
    assert (await control.client.delete(ROUTE, params={"id": limit["id"]})).status_code == 404


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tokenLimit": 0}, "tokenLimit"),
        ({"tokenLimit": "5"}, "tokenLimit"),
        ({"resetInterval": "hourly"}, "resetInterval"),
        ({"resetTime": "24:00"}, "resetTime"),
        ({"scopeType": "model"}, "scopeValue"),
        ({"scopeValue": "x"}, "scopeValue"),
        ({"other": 1}, "other"),
    ],
)
async def test_what_is_wrong_is_named(control: Control, fields: dict[str, Any], field: str) -> None:
    key = await make_key(control)
    answer = await control.client.post(
        ROUTE, json={"apiKeyId": key["id"], "tokenLimit": 5} | fields
    )
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == field


async def test_a_limit_needs_its_key(control: Control) -> None:
    missing = {"apiKeyId": "00000000-0000-4000-8000-000000000000", "tokenLimit": 5}
    assert (await control.client.post(ROUTE, json=missing)).status_code == 404
    assert (await control.client.get(ROUTE, params={"apiKeyId": "x"})).status_code == 404
    mine, other = await make_key(control), await make_key(control)
    limit = (
        await control.client.post(ROUTE, json={"apiKeyId": mine["id"], "tokenLimit": 5})
    ).json()
    taken = {"id": limit["id"], "apiKeyId": other["id"], "tokenLimit": 5}
    assert (await control.client.post(ROUTE, json=taken)).status_code == 404
    assert (await control.client.delete(f"/api/keys/{mine['id']}")).status_code == 200
    gone = await control.client.delete(ROUTE, params={"id": limit["id"]})
    assert gone.status_code == 404, "it went with its key"


async def test_what_the_relay_gets_of_a_key(control: Control) -> None:
    key = await make_key(
        control,
        rateLimits=[{"limit": 9, "window": 60}, {"limit": 5, "window": 60}],
        dailyUsageLimitUsd=1.5,
        weeklyUsageLimitUsd=0,
        accessSchedule={
            "enabled": True,
            "from": "22:00",
            "until": "06:00",
            "days": [5],
            "tz": "UTC",
        },
    )
    assert [one["amount"] for one in compiled(control, key)] == [5]
    await control.client.patch(f"/api/keys/{key['id']}", json={"usageLimitEnabled": True})
    assert [(one["id"], one["amount"]) for one in compiled(control, key)] == [
        ("rate:60", 5),
        ("usd:day", 1_500_000),
        ("usd:week", 0),
    ]
    (snapshot,) = [one for one in control.snapshot()["keys"] if one["id"] == key["id"]]
    assert snapshot["access_schedule"]["from"] == "22:00"


async def test_a_program_neither_limits_nor_frees_a_key_that_may_manage(control: Control) -> None:
    key = await make_key(control, scopes=["manage"])
    client = control.client
    by_person = await client.post(ROUTE, json={"apiKeyId": key["id"], "tokenLimit": 1000})
    assert by_person.status_code == 201
    limit_id = by_person.json()["id"]
    for kind, scopes in (("key", ["manage"]), ("token", ["admin"])):
        headers = control.as_principal(kind, key["id"], scopes)
        choked = {"apiKeyId": key["id"], "tokenLimit": 1}
        for answer in (
            await client.post(ROUTE, json=choked, headers=headers),
            await client.post(ROUTE, json={**choked, "id": limit_id}, headers=headers),
            await client.delete(ROUTE, params={"id": limit_id}, headers=headers),
        ):
            assert answer.status_code == 403
    assert [each["amount"] for each in compiled(control, key)] == [1000]
