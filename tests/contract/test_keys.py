"""`/api/keys`: every field and bound of the key table, the rules between, what is never shown."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairlead.gateway.keys.fields import KEY_SCOPES

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

UUID = "0b0e7a3e-6f4c-4d3a-9a64-0d9f7c1f2a10"
RULE = {"limit": 1, "window": 60}
SCHEDULE = {"enabled": True, "from": "22:00", "until": "06:00", "days": [0, 6], "tz": "UTC"}
ENDPOINTS = [
    "chat",
    "search",
    "embeddings",
    "images",
    "audio",
    "video",
    "rerank",
    "models",
    "moderations",
    "ocr",
    "batches",
    "files",
    "scraping",
    "management",
]

BOOLEANS = [
    "isActive",
    "isBanned",
    "allowAutoCombos",
    "noLog",
    "captureBodies",
    "autoResolve",
    "compressionEnabled",
    "disableNonPublicModels",
    "allowUsageCommand",
    "usageLimitEnabled",
    "chaosModeEnabled",
]

# Body, then the fields whose value is as sent.
GOOD = [
    {"name": "x"},
    {"name": "ü" * 200},
    *({field: value} for field in BOOLEANS for value in (True, False)),
    {"expiresAt": None},
    {"modelAccessMode": "restricted", "allowedModels": ["openai/*"] * 1000},
    {"modelAccessMode": "restricted", "allowedModels": []},
    {"blockedModels": ["m"] * 1000},
    {"allowedCombos": ["c"] * 500},
    {"connectionAccessMode": "restricted", "allowedConnections": [UUID] * 100},
    *({"catalogScope": value} for value in ("all", "combos", "models")),
    {"forcedModel": "m" * 300},
    {"forcedModel": None},
    {"allowedProviderObjects": ["vs_1", "gs://bucket/*", "*"]},
    {"allowedProviderObjects": ["x" * 300] * 200},
    {"throttleDelayMs": 0},
    {"throttleDelayMs": 300_000},
    {"maxSessions": 0},
    {"maxSessions": 10_000},
    {"rateLimits": [RULE] * 50},
    {"rateLimits": []},
    {"rateLimits": None},
    {"accessSchedule": SCHEDULE},
    {"accessSchedule": None},
    {"scopes": ["manage", "self:usage", "read:health"]},
    {"scopes": ["admin", *KEY_SCOPES]},
    {"chaosRate": 0.0, "chaosFaults": ["timeout"], "chaosLatencyMs": 120_000},
    {"allowedEndpoints": ENDPOINTS},
    {"allowedEndpoints": ["chat"] * 20},
    *({"streamDefaultMode": value} for value in ("legacy", "json")),
    *({"cacheDefaultMode": value} for value in ("legacy", "bypass")),
    *({"toolServiceMode": value} for value in ("inherit", "default", "priority", "flex")),
    *({"unpricedModels": value} for value in ("allow", "refuse", None)),
    *({"inexpressible": value} for value in ("refuse", "drop", None)),
    {"dailyUsageLimitUsd": 0},
    {"dailyUsageLimitUsd": 12.345678, "weeklyUsageLimitUsd": 1e9},
    {"dailyUsageLimitUsd": None, "weeklyUsageLimitUsd": None},
    {"monthlyUsageLimitUsd": 100.5, "usageLimitTz": "America/St_Johns"},
    {"usageAlertPercents": []},
    {"usageAlertPercents": [90, 1, 100]},
]

# Body, then the field that the answer names.
BAD = [
    ({"name": ""}, "name"),
    ({"name": " "}, "name"),
    ({"name": "x" * 201}, "name"),
    ({"name": "a\nb"}, "name"),
    ({"name": "a\u0000"}, "name"),
    ({"name": 7}, "name"),
    ({"name": None}, "name"),
    *(({field: value}, field) for field in BOOLEANS for value in (None, 1, "true", [])),
    ({"expiresAt": "tomorrow"}, "expiresAt"),
    ({"expiresAt": "2027-01-31T12:00:00"}, "expiresAt"),
    ({"expiresAt": 1_800_000_000}, "expiresAt"),
    ({"expiresAt": "1969-12-31T23:59:59Z"}, "expiresAt"),
    ({"expiresAt": "0001-01-01T00:00:00+14:00"}, "expiresAt"),
    ({"expiresAt": "9999-12-31T23:59:59-12:00"}, "expiresAt"),
    ({"forcedModel": "a\r\nb"}, "forcedModel"),
    ({"modelAccessMode": "none"}, "modelAccessMode"),
    ({"allowedModels": ["m"]}, "allowedModels"),
    ({"modelAccessMode": "restricted", "allowedModels": ["m"] * 1001}, "allowedModels"),
    ({"blockedModels": ["m"] * 1001}, "blockedModels"),
    ({"blockedModels": [""]}, "blockedModels[0]"),
    ({"blockedModels": "m"}, "blockedModels"),
    ({"allowedCombos": ["c"] * 501}, "allowedCombos"),
    ({"allowedConnections": [UUID]}, "allowedConnections"),
    ({"connectionAccessMode": "restricted"}, "allowedConnections"),
    (
        {"connectionAccessMode": "restricted", "allowedConnections": [UUID] * 101},
        "allowedConnections",
    ),
    (
        {"connectionAccessMode": "restricted", "allowedConnections": ["no"]},
        "allowedConnections[0]",
    ),
    ({"allowedProviderObjects": ["x"] * 201}, "allowedProviderObjects"),
    ({"allowedProviderObjects": [""]}, "allowedProviderObjects[0]"),
    ({"allowedProviderObjects": ["x" * 301]}, "allowedProviderObjects[0]"),
    ({"allowedProviderObjects": ["a\u0000"]}, "allowedProviderObjects[0]"),
    ({"catalogScope": "none"}, "catalogScope"),
    ({"unpricedModels": "deny"}, "unpricedModels"),
    ({"inexpressible": "ignore"}, "inexpressible"),
    ({"unpricedModels": False}, "unpricedModels"),
    ({"forcedModel": "m" * 301}, "forcedModel"),
    ({"forcedModel": ""}, "forcedModel"),
    ({"throttleDelayMs": -1}, "throttleDelayMs"),
    ({"throttleDelayMs": 300_001}, "throttleDelayMs"),
    ({"throttleDelayMs": 10**30}, "throttleDelayMs"),
    ({"throttleDelayMs": 1.5}, "throttleDelayMs"),
    ({"throttleDelayMs": True}, "throttleDelayMs"),
    ({"throttleDelayMs": "1"}, "throttleDelayMs"),
    ({"maxSessions": -1}, "maxSessions"),
    ({"maxSessions": 10_001}, "maxSessions"),
    ({"rateLimits": [RULE] * 51}, "rateLimits"),
    ({"rateLimits": [{"limit": 0, "window": 60}]}, "rateLimits[0].limit"),
    ({"rateLimits": [RULE, {"limit": 1, "window": -1}]}, "rateLimits[1].window"),
    ({"rateLimits": [{"limit": 1}]}, "rateLimits[0].window"),
    ({"rateLimits": [{**RULE, "burst": 1}]}, "rateLimits[0].burst"),
    ({"rateLimits": [{**RULE, "limit": 10**30}]}, "rateLimits[0].limit"),
    ({"accessSchedule": {**SCHEDULE, "from": "24:00"}}, "accessSchedule.from"),
    ({"accessSchedule": {**SCHEDULE, "until": "6:00"}}, "accessSchedule.until"),
    ({"accessSchedule": {**SCHEDULE, "until": "22:00"}}, "accessSchedule.until"),
    ({"accessSchedule": {**SCHEDULE, "days": []}}, "accessSchedule.days"),
    ({"accessSchedule": {**SCHEDULE, "days": [1, 1]}}, "accessSchedule.days"),
    ({"accessSchedule": {**SCHEDULE, "days": [7]}}, "accessSchedule.days[0]"),
    ({"accessSchedule": {**SCHEDULE, "tz": "Mars/Base"}}, "accessSchedule.tz"),
    ({"accessSchedule": {**SCHEDULE, "tz": "../../etc/passwd"}}, "accessSchedule.tz"),
    ({"accessSchedule": {**SCHEDULE, "tz": "/etc/passwd"}}, "accessSchedule.tz"),
    ({"accessSchedule": {}}, "accessSchedule.enabled"),
    ({"scopes": [f"s{n}" for n in range(33)]}, "scopes"),
    ({"scopes": ["Manage"]}, "scopes[0]"),
    ({"scopes": ["a b"]}, "scopes[0]"),
    ({"scopes": ["mcp:connect"]}, "scopes"),
    ({"chaosRate": 1.1}, "chaosRate"),
    ({"chaosFaults": []}, "chaosFaults"),
    ({"chaosFaults": ["error", "error"]}, "chaosFaults"),
    ({"chaosFaults": ["crash"]}, "chaosFaults[0]"),
    ({"chaosLatencyMs": 0}, "chaosLatencyMs"),
    ({"allowedEndpoints": ["chat"] * 21}, "allowedEndpoints"),
    ({"allowedEndpoints": ["chat", "agents"]}, "allowedEndpoints"),
    ({"allowedEndpoints": ["teapot"]}, "allowedEndpoints[0]"),
    ({"streamDefaultMode": "sse"}, "streamDefaultMode"),
    ({"cacheDefaultMode": None}, "cacheDefaultMode"),
    ({"toolServiceMode": "slow"}, "toolServiceMode"),
    ({"dailyUsageLimitUsd": -0.01}, "dailyUsageLimitUsd"),
    ({"weeklyUsageLimitUsd": "1"}, "weeklyUsageLimitUsd"),
    ({"weeklyUsageLimitUsd": True}, "weeklyUsageLimitUsd"),
    ({"weeklyUsageLimitUsd": 10**30}, "weeklyUsageLimitUsd"),
    ({"monthlyUsageLimitUsd": -1}, "monthlyUsageLimitUsd"),
    ({"usageLimitTz": "Mars/Olympus"}, "usageLimitTz"),
    ({"usageLimitTz": None}, "usageLimitTz"),
    ({"usageAlertPercents": [0]}, "usageAlertPercents[0]"),
    ({"usageAlertPercents": [101]}, "usageAlertPercents[0]"),
    ({"usageAlertPercents": [50, 50]}, "usageAlertPercents"),
    ({"usageAlertPercents": list(range(1, 12))}, "usageAlertPercents"),
    ({"name": "x", "colour": "red"}, "colour"),
    ({"name": "x", "id": UUID}, "id"),
    ({"name": "x", "hash": "0"}, "hash"),
    ({"name": "x", "createdAt": "2027-01-01T00:00:00Z"}, "createdAt"),
    ({"name": "x", "__proto__": {}}, "__proto__"),
    ({"name": "x", "is_active": True}, "is_active"),
]


async def made(control, **fields) -> dict:
    answer = await control.client.post("/api/keys", json={"name": "laptop", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_a_key_is_shown_once_and_kept_as_a_hash(control) -> None:
    new = await made(control)
    text = new.pop("key")
    assert text.startswith("sk-fl-")
    assert (await control.client.get(f"/api/keys/{new['id']}")).json() == new
    assert text not in (await control.client.get("/api/keys")).text
    files = [path for path in control.data_dir.rglob("*") if path.is_file()]
    kept = [path for path in files if text.encode() in path.read_bytes()]
    assert kept == []
    [compiled] = control.snapshot()["keys"]
    assert compiled["id"] == new["id"]
    assert len(compiled["hash"]) == 64


async def test_a_new_key_has_the_usual_defaults(control) -> None:
    new = await made(control)
    assert {
        **dict.fromkeys(BOOLEANS, False),
        "name": "laptop",
        "isActive": True,
        "compressionEnabled": True,
        "allowAutoCombos": True,
        "catalogScope": "all",
        "modelAccessMode": "all",
        "streamDefaultMode": "legacy",
        "cacheDefaultMode": "legacy",
        "toolServiceMode": "inherit",
        "expiresAt": None,
        "rateLimits": None,
        "scopes": [],
    }.items() <= new.items()


async def test_every_good_value_is_kept_as_sent(control) -> None:
    for body in GOOD:
        key_id = (await made(control))["id"]
        answer = await control.client.patch(f"/api/keys/{key_id}", json=body)
        assert answer.status_code == 200, (body, answer.text)
        assert body.items() <= answer.json().items()
        assert (await control.client.get(f"/api/keys/{key_id}")).json() == answer.json()


async def test_every_bad_value_is_refused_by_name_and_changes_nothing(control) -> None:
    before = await made(control)
    before.pop("key")
    for body, field in BAD:
        answer = await control.client.patch(f"/api/keys/{before['id']}", json=body)
        assert answer.status_code == 400, body
        error = answer.json()["error"]
        assert error["param"] == field, (body, error)
        assert field in error["message"]
        created = await control.client.post("/api/keys", json={"name": "laptop", **body})
        assert created.status_code == 400, body
    assert (await control.client.get(f"/api/keys/{before['id']}")).json() == before
    assert (await control.client.get("/api/keys")).json()["total"] == 1


async def test_a_body_without_any_field_of_a_key_says_so(control) -> None:
    key_id = (await made(control))["id"]
    for body in ({}, {"colour": "red"}, {"id": UUID, "hash": "0"}):
        answer = await control.client.patch(f"/api/keys/{key_id}", json=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == "No valid fields to update"


async def test_rules_between_fields_hold_on_the_whole_record(control) -> None:
    key_id = (await made(control, modelAccessMode="restricted", allowedModels=["m"]))["id"]

    async def patch(body: dict) -> int:
        return (await control.client.patch(f"/api/keys/{key_id}", json=body)).status_code

    assert await patch({"modelAccessMode": "all"}) == 400
    assert await patch({"modelAccessMode": "all", "allowedModels": []}) == 200
    assert await patch({"connectionAccessMode": "restricted"}) == 400
    both = {"connectionAccessMode": "restricted", "allowedConnections": [UUID]}
    assert await patch(both) == 200
    assert await patch({"allowedConnections": []}) == 400
    assert await patch({"connectionAccessMode": "all"}) == 400


async def test_moments_are_given_back_in_utc(control) -> None:
    new = await made(control, expiresAt="2027-01-31T12:00:00.250+02:00")
    assert new["expiresAt"] == "2027-01-31T10:00:00.250Z"
    assert control.snapshot()["keys"][0]["expires_at_ms"] == 1801389600250


async def test_lists_come_in_pages_oldest_first(control) -> None:
    ids = [(await made(control))["id"] for _ in range(5)]
    pages = [
        (await control.client.get(f"/api/keys?limit=2&offset={offset}")).json()
        for offset in (0, 2, 4, 6)
    ]
    assert [key["id"] for page in pages for key in page["keys"]] == ids
    assert all((page["total"], page["limit"]) == (5, 2) for page in pages)
    times = [key["createdAt"] for page in pages for key in page["keys"]]
    assert all(a <= b for a, b in pairwise(times))
    for query in ("limit=0", "limit=501", "limit=x", "offset=-1", "offset=99999999999999999999"):
        assert (await control.client.get(f"/api/keys?{query}")).status_code == 400


async def test_a_revoked_key_is_gone(control) -> None:
    key_id = (await made(control))["id"]
    answer = await control.client.delete(f"/api/keys/{key_id}")
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert control.snapshot()["keys"] == []
    for method in ("GET", "DELETE"):
        assert (await control.client.request(method, f"/api/keys/{key_id}")).status_code == 404
    patched = await control.client.patch(f"/api/keys/{key_id}", json={"isActive": True})
    assert patched.status_code == 404


async def test_a_regenerated_key_has_another_text_and_nothing_else(control) -> None:
    first = await made(control, scopes=["self:usage"], dailyUsageLimitUsd=1)
    (before,) = control.snapshot()["keys"]
    answer = await control.client.post(f"/api/keys/{first['id']}/regenerate")
    assert answer.status_code == 200
    second = answer.json()
    assert second["key"] != first["key"]
    assert second["keyPreview"] != first["keyPreview"]
    changing = {"key", "keyPreview", "updatedAt"}
    assert {name: first[name] for name in first.keys() - changing} == {
        name: second[name] for name in second.keys() - changing
    }
    (after,) = control.snapshot()["keys"]
    assert after["hash"] != before["hash"]
    assert {**after, "hash": before["hash"]} == before
    shown = (await control.client.get(f"/api/keys/{first['id']}")).json()
    assert shown == {name: second[name] for name in second.keys() - {"key"}}
    missing = await control.client.post(f"/api/keys/{UUID}/regenerate")
    assert (missing.status_code, missing.json()["error"]["param"]) == (404, "id")


@pytest.mark.parametrize("scope", ["manage", "admin"])
async def test_a_key_neither_makes_nor_touches_one_that_may_manage(control, scope: str) -> None:
    as_key = control.as_principal("key", UUID, ["manage"])
    client = control.client
    plain = (await made(control))["id"]
    managing = (await made(control, scopes=[scope], isActive=False))["id"]
    refused = [
        await client.post("/api/keys", json={"name": "x", "scopes": [scope]}, headers=as_key),
        await client.patch(f"/api/keys/{plain}", json={"scopes": [scope]}, headers=as_key),
        await client.patch(f"/api/keys/{managing}", json={"isActive": True}, headers=as_key),
        await client.delete(f"/api/keys/{managing}", headers=as_key),
        await client.post(f"/api/keys/{managing}/regenerate", headers=as_key),
        await client.delete(
            f"/api/keys/{managing}", headers=control.as_principal("token", UUID, ["admin"])
        ),
    ]
    assert [answer.status_code for answer in refused] == [403] * 6
    assert (await client.get(f"/api/keys/{managing}")).status_code == 200
    for answer in (
        await client.post(
            "/api/keys", json={"name": "x", "scopes": ["read:health"]}, headers=as_key
        ),
        await client.patch(f"/api/keys/{plain}", json={"isBanned": True}, headers=as_key),
        await client.patch(
            f"/api/keys/{plain}",
            json={"scopes": [scope]},
            headers=control.as_principal("session", UUID),
        ),
    ):
        assert answer.status_code in (200, 201)
    assert (await client.delete(f"/api/keys/{managing}")).status_code == 200
