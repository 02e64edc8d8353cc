"""`/api/groups` and `/api/me/groups`: fields and rules, the tree, the snapshot, members, and who may what."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fairlead.identity.users import insert_user, new_user
from tests.contract.conftest import Control

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

UUID = "0b0e7a3e-6f4c-4d3a-9a64-0d9f7c1f2a10"

GOOD: list[dict[str, Any]] = [
    {"isActive": False},
    {"tags": ["team-a", "Cost/Center:7"]},
    {"modelAccessMode": "restricted", "allowedModels": ["openai/*"]},
    {"blockedModels": ["openai/o1"], "allowedCombos": ["fast"]},
    {"connectionAccessMode": "restricted", "allowedConnections": [UUID]},
    {"guardrails": {"request": {"piiMasker": "block"}, "answer": {"credentialMasker": "redact"}}},
    {
        "rateLimits": [{"limit": 10, "window": 60}],
        "tokenLimits": [{"limit": 5, "interval": "daily"}],
    },
    {"dailyUsageLimitUsd": 1.5, "weeklyUsageLimitUsd": 0, "monthlyUsageLimitUsd": 1e9},
    {"usageLimitTz": "Europe/Vienna", "usageAlertPercents": [10, 90]},
]
BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": " "}, "name"),
    ({"nickname": "x"}, "nickname"),
    ({"parentId": "x"}, "parentId"),
    ({"parentId": UUID}, "parentId"),
    ({"tags": ["a,b"]}, "tags[0]"),
    ({"tags": ["a", "a"]}, "tags"),
    ({"tags": [f"t{n}" for n in range(21)]}, "tags"),
    ({"allowedModels": ["m"]}, "allowedModels"),
    ({"allowedConnections": [UUID]}, "allowedConnections"),
    ({"connectionAccessMode": "restricted"}, "allowedConnections"),
    ({"guardrails": {"request": {"piiMasker": "shout"}}}, "guardrails.request.piiMasker"),
    ({"guardrails": {"answer": {"promptInjection": "warn"}}}, "guardrails.answer.promptInjection"),
    ({"rateLimits": [{"limit": 0, "window": 60}]}, "rateLimits[0].limit"),
    ({"tokenLimits": [{"limit": 1, "interval": "hourly"}]}, "tokenLimits[0].interval"),
    ({"tokenLimits": [{"limit": n, "interval": "daily"} for n in (1, 2)]}, "tokenLimits"),
    ({"dailyUsageLimitUsd": -1}, "dailyUsageLimitUsd"),
    ({"usageLimitTz": "Mars/Olympus"}, "usageLimitTz"),
    ({"usageAlertPercents": [0]}, "usageAlertPercents[0]"),
]


async def made(control: Control, name: str = "team", **fields: Any) -> dict[str, Any]:
    answer = await control.client.post("/api/groups", json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def key_in(control: Control, group_id: str | None, **fields: Any) -> dict[str, Any]:
    answer = await control.client.post(
        "/api/keys", json={"name": "key", "groupId": group_id, **fields}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()


async def person(control: Control, name: str) -> str:
    user = new_user(f"{name}@example.com", name, "member", None)
    await control.app.state.services.state.record(lambda con: insert_user(con, user))
    return user.id


async def test_every_field_comes_back_as_sent(control: Control) -> None:
    for fields in GOOD:
        await check_round_trip(control, fields)


async def check_round_trip(control: Control, fields: dict[str, Any]) -> None:
    group = await made(control, **fields)
    shown = (await control.client.get(f"/api/groups/{group['id']}")).json()
    for name, value in fields.items():
        expected = value
        if name == "guardrails":
            off = {"piiMasker": "off", "credentialMasker": "off"}
            expected = {
                "request": {**off, "promptInjection": "off", **value["request"]},
                "answer": {**off, **value["answer"]},
            }
        assert shown[name] == expected
    assert shown == group
    plain = await made(control, "plain")
    changed = await control.client.patch(f"/api/groups/{plain['id']}", json=fields)
    assert {name: changed.json()[name] for name in fields} == {name: shown[name] for name in fields}


async def test_what_is_wrong_is_named(control: Control) -> None:
    for fields, param in BAD:
        answer = await control.client.post("/api/groups", json={"name": "team", **fields})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == param, fields
    assert (await control.client.get("/api/groups")).json()["total"] == 0


async def test_three_levels_and_no_circle(control: Control) -> None:
    firm = await made(control, "firm")
    area = await made(control, "area", parentId=firm["id"])
    team = await made(control, "team", parentId=area["id"])
    assert [place["name"] for place in team["path"]] == ["firm", "area"]
    too_deep = await control.client.post("/api/groups", json={"name": "x", "parentId": team["id"]})
    assert (too_deep.status_code, too_deep.json()["error"]["param"]) == (400, "parentId")
    for parent in (firm, area, team):
        answer = await control.client.patch(
            f"/api/groups/{firm['id']}", json={"parentId": parent["id"]}
        )
        assert answer.status_code == 400, "a group is not below itself"
    # Two levels of its own do not fit below a second level.
    other = await made(control, "other")
    below = await made(control, "below", parentId=other["id"])
    path = f"/api/groups/{area['id']}"
    deep = await control.client.patch(path, json={"parentId": below["id"]})
    assert deep.status_code == 400
    moved = await control.client.patch(path, json={"parentId": other["id"]})
    assert moved.status_code == 200
    shown = (await control.client.get(f"/api/groups/{team['id']}")).json()
    assert [place["name"] for place in shown["path"]] == ["other", "area"]
    listed = (await control.client.get("/api/groups")).json()
    counts = {each["name"]: each["groupCount"] for each in listed["groups"]}
    assert counts == {"firm": 0, "area": 1, "team": 0, "other": 2, "below": 0}


async def test_a_group_with_keys_is_deleted_only_where_they_have_a_place(control: Control) -> None:
    firm = await made(control, "firm")
    team = await made(control, "team", parentId=firm["id"])
    keys = [await key_in(control, team["id"]) for _ in range(3)]
    refused = await control.client.delete(f"/api/groups/{firm['id']}")
    assert refused.status_code == 409
    assert "1 groups below" in refused.json()["error"]["message"]
    path = f"/api/groups/{team['id']}"
    refused = await control.client.delete(path)
    assert (refused.status_code, refused.json()["error"]["param"]) == (409, "moveKeysTo")
    assert "has 3 keys" in refused.json()["error"]["message"]
    for wrong in (UUID, "x", team["id"]):
        answer = await control.client.delete(path, params={"moveKeysTo": wrong})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "moveKeysTo")
    gone = await control.client.delete(path, params={"moveKeysTo": firm["id"]})
    assert gone.status_code == 200
    assert (await control.client.get(path)).status_code == 404
    shown = (await control.client.get(f"/api/groups/{firm['id']}/keys")).json()
    assert [key["id"] for key in shown["keys"]] == [key["id"] for key in keys]
    await control.client.delete(f"/api/groups/{firm['id']}", params={"moveKeysTo": "none"})
    shown = (await control.client.get(f"/api/keys/{keys[0]['id']}")).json()
    assert shown["groupId"] is None
    empty = f"/api/groups/{(await made(control, 'empty'))['id']}"
    answer = await control.client.delete(empty, params={"moveKeysTo": UUID})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "moveKeysTo")
    assert (await control.client.delete(empty)).status_code == 200


async def test_a_key_belongs_to_a_group_that_is_there(control: Control) -> None:
    group = await made(control)
    key = await key_in(control, group["id"], tags=["mine"])
    assert (key["groupId"], key["tags"], key["madeBy"]) == (group["id"], ["mine"], None)
    for wrong in (UUID, "x"):
        answer = await control.client.patch(f"/api/keys/{key['id']}", json={"groupId": wrong})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "groupId")
    found = (await control.client.get("/api/keys", params={"groupId": group["id"]})).json()
    assert (found["total"], found["keys"][0]["id"]) == (1, key["id"])
    free = await control.client.patch(f"/api/keys/{key['id']}", json={"groupId": None})
    assert free.json()["groupId"] is None


async def test_the_relay_is_told_of_every_level(control: Control) -> None:
    firm = await made(
        control, "firm", tags=["all"], monthlyUsageLimitUsd=2.5, usageLimitTz="Europe/Vienna"
    )
    team = await made(
        control,
        "team",
        parentId=firm["id"],
        tags=["research"],
        rateLimits=[{"limit": 9, "window": 60}, {"limit": 5, "window": 60}],
        tokenLimits=[{"limit": 100, "interval": "weekly"}],
        guardrails={"request": {"piiMasker": "block"}},
    )
    key = await key_in(control, team["id"], tags=["laptop"])
    document = control.snapshot()
    (compiled,) = [each for each in document["keys"] if each["id"] == key["id"]]
    assert (compiled["group"], compiled["tags"]) == (team["id"], ",all,laptop,research,")
    groups = {each["id"]: each for each in document["groups"]}
    assert groups[team["id"]]["parent"] == firm["id"]
    assert groups[team["id"]]["guardrails"]["request"]["pii_masker"] == "block"
    assert [
        (one["name"], one["unit"], one["amount"], one["period"])
        for one in groups[team["id"]]["limits"]
    ] == [
        ("rateLimits", "requests", 5, {"seconds": 60}),
        ("tokenLimits", "tokens", 100, {"week": 0}),
    ]
    (budget,) = groups[firm["id"]]["limits"]
    assert (budget["amount"], budget["period"], budget["zone"]) == (
        2_500_000,
        {"month": 0},
        "Europe/Vienna",
    )


async def test_members_are_users_who_may_sign_in(control: Control) -> None:
    group = await made(control)
    path = f"/api/groups/{group['id']}/members"
    ann, ben = await person(control, "ann"), await person(control, "ben")
    await control.client.post(path, json={"userId": ann, "role": "admin"})
    answer = await control.client.post(path, json={"email": "Ben@Example.com"})
    assert [(each["userId"], each["role"]) for each in answer.json()["members"]] == [
        (ann, "admin"),
        (ben, "member"),
    ]
    changed = await control.client.post(path, json={"userId": ann, "role": "member"})
    assert [each["role"] for each in changed.json()["members"]] == ["member", "member"]
    for wrong in ({}, {"userId": ann, "email": "b@example.com"}, {"email": "no@example.com"}):
        assert (await control.client.post(path, json=wrong)).status_code == 400
    await control.client.delete(f"/api/users/{ben}")
    assert [each["userId"] for each in (await control.client.get(path)).json()["members"]] == [ann]
    assert (await control.client.delete(f"{path}/{ben}")).status_code == 404


# What each caller of a team below an area is answered: an admin of the area, an admin of the team, a member who made
# the key, another member, a member of another group, an operator without a membership, and a program.
CALLERS = ("area-admin", "admin", "maker", "member", "stranger", "operator", "token", "local")
MATRIX: list[tuple[str, str, dict[str, Any] | None, tuple[int, ...]]] = [
    ("GET", "/spending", None, (200, 200, 200, 200, 404, 404, 403, 404)),
    ("GET", "/keys", None, (200, 200, 200, 200, 404, 404, 403, 404)),
    ("POST", "/keys", {"name": "new"}, (201, 201, 201, 201, 404, 404, 403, 404)),
    ("PATCH", "/keys/{key}", {"name": "changed"}, (200, 200, 200, 403, 404, 404, 403, 404)),
    ("POST", "/keys/{key}/regenerate", None, (200, 200, 200, 403, 404, 404, 403, 404)),
    ("GET", "/members", None, (200, 200, 200, 200, 404, 404, 403, 404)),
    ("POST", "/members", {"email": "new@example.com"}, (200, 200, 403, 403, 404, 404, 403, 404)),
    ("DELETE", "/members/{new}", None, (200, 200, 403, 403, 404, 404, 403, 404)),
    ("DELETE", "/keys/{key}", None, (200, 200, 200, 403, 404, 404, 403, 404)),
]


async def test_who_may_what_in_a_group(control: Control) -> None:
    area = await made(control, "area")
    team = await made(control, "team", parentId=area["id"])
    other = await made(control, "other")
    new = await person(control, "new")
    ids: dict[str, str | None] = {name: await person(control, name) for name in CALLERS[:5]}
    for name, group, role in (
        ("area-admin", area, "admin"),
        ("admin", team, "admin"),
        ("maker", team, "member"),
        ("member", team, "member"),
        ("stranger", other, "admin"),
    ):
        body = {"userId": ids[name], "role": role}
        await control.client.post(f"/api/groups/{group['id']}/members", json=body)
    as_caller = {name: control.as_principal("session", ids[name]) for name in CALLERS[:5]} | {
        "operator": control.as_principal("session", str(uuid4()), ["manage"]),
        "token": control.as_principal("token", str(uuid4()), ["admin"]),
        "local": control.as_principal("local"),
    }
    base = f"/api/me/groups/{team['id']}"

    async def make_key() -> str:
        answer = await control.client.post(
            f"{base}/keys", json={"name": "its"}, headers=as_caller["maker"]
        )
        assert answer.json()["madeBy"] == ids["maker"]
        return str(answer.json()["id"])

    key_id = await make_key()
    for method, path, body, expected in MATRIX:
        if "{new}" in path:
            await control.client.post(f"/api/groups/{team['id']}/members", json={"userId": new})
        for name, status in zip(CALLERS, expected, strict=True):
            answer = await control.client.request(
                method,
                base + path.format(key=key_id, new=new),
                json=body,
                headers=as_caller[name],
            )
            assert answer.status_code == status, (method, path, name, answer.text)
            if method == "DELETE" and status == 200:
                key_id = await make_key() if "{key}" in path else key_id
                body_of_new = {"userId": new}
                await control.client.post(f"/api/groups/{team['id']}/members", json=body_of_new)


async def test_a_member_makes_keys_within_the_groups_bounds(control: Control) -> None:
    team, other = await made(control, "team"), await made(control, "other")
    ann = await person(control, "ann")
    await control.client.post(f"/api/groups/{team['id']}/members", json={"userId": ann})
    headers = control.as_principal("session", ann)
    path = f"/api/me/groups/{team['id']}/keys"
    made_key = await control.client.post(
        path,
        json={
            "name": "mine",
            "allowedModels": ["a/*"],
            "modelAccessMode": "restricted",
            "tags": ["x"],
        },
        headers=headers,
    )
    key = made_key.json()
    assert (made_key.status_code, key["groupId"], key["madeBy"]) == (201, team["id"], ann)
    for field, value in (
        ("scopes", ["manage"]),
        ("allowedProviderObjects", ["vs_1"]),
        ("disabledGuardrails", ["pii-masker"]),
        ("noLog", True),
        ("unpricedModels", "allow"),
        ("isBanned", False),
        ("throttleDelayMs", 0),
        ("groupId", other["id"]),
    ):
        for answer in (
            await control.client.post(path, json={"name": "x", field: value}, headers=headers),
            await control.client.patch(f"{path}/{key['id']}", json={field: value}, headers=headers),
        ):
            assert (answer.status_code, answer.json()["error"]["param"]) == (403, field)
    # An operator's key in the group is out of a member's reach, and one that is banned out of its maker's.
    managing = await key_in(control, team["id"], scopes=["manage"])
    admin = await person(control, "adam")
    body = {"userId": admin, "role": "admin"}
    await control.client.post(f"/api/groups/{team['id']}/members", json=body)
    as_admin = control.as_principal("session", admin)
    refused = await control.client.delete(f"{path}/{managing['id']}", headers=as_admin)
    assert refused.status_code == 403
    await control.client.patch(f"/api/keys/{key['id']}", json={"isBanned": True})
    banned = await control.client.post(f"{path}/{key['id']}/regenerate", headers=headers)
    assert banned.status_code == 403
    mine = (await control.client.get("/api/me/groups", headers=as_admin)).json()
    assert [(each["name"], each["role"]) for each in mine["groups"]] == [("team", "admin")]
    moved = await control.client.get(f"/api/me/groups/{other['id']}/keys", headers=as_admin)
    assert moved.status_code == 404


@pytest.mark.parametrize(
    "given",
    [
        {"allowedProviderObjects": ["vs_1"]},
        {"disabledGuardrails": ["pii-masker"]},
        {"noLog": True},
        {"unpricedModels": "allow"},
    ],
)
async def test_a_key_with_what_an_operator_gave_stays_the_operators(
    control: Control, given: dict[str, Any]
) -> None:
    """A new text would give it to the group's admin."""
    team = await made(control, "team")
    key = await key_in(control, team["id"], **given)
    plain = await key_in(control, team["id"], unpricedModels="refuse")
    admin = await person(control, "adam")
    body = {"userId": admin, "role": "admin"}
    await control.client.post(f"/api/groups/{team['id']}/members", json=body)
    headers = control.as_principal("session", admin)
    path = f"/api/me/groups/{team['id']}/keys"
    (name,) = given
    for answer in (
        await control.client.post(f"{path}/{key['id']}/regenerate", headers=headers),
        await control.client.patch(f"{path}/{key['id']}", json={"name": "x"}, headers=headers),
    ):
        assert (answer.status_code, name in answer.text) == (403, True), answer.text
    renewed = await control.client.post(f"{path}/{plain['id']}/regenerate", headers=headers)
    assert renewed.status_code == 200
    revoked = await control.client.delete(f"{path}/{key['id']}", headers=headers)
    assert revoked.status_code == 200


@pytest.mark.parametrize("scope", ["read:usage", "read:bodies", "pricing:write", "lease:exclusive"])
async def test_a_key_with_an_operators_scope_stays_the_operators(
    control: Control, scope: str
) -> None:
    """Its text would open what the scope opens for whoever asks for it anew."""
    team = await made(control, "team")
    wide = await key_in(control, team["id"], scopes=[scope, "self:usage"])
    own = await key_in(control, team["id"], scopes=["self:usage", "self:account-quota"])
    adam = await person(control, "adam")
    body = {"userId": adam, "role": "admin"}
    await control.client.post(f"/api/groups/{team['id']}/members", json=body)
    headers = control.as_principal("session", adam)
    path = f"/api/me/groups/{team['id']}/keys"
    stored = (await control.client.get(f"/api/keys/{wide['id']}")).json()
    for method, place, sent in (
        ("POST", f"{path}/{wide['id']}/regenerate", None),
        ("PATCH", f"{path}/{wide['id']}", {"name": "mine", "ipAllowlist": []}),
    ):
        answer = await control.client.request(method, place, json=sent, headers=headers)
        assert answer.status_code == 403, answer.text
        assert scope in answer.json()["error"]["message"]
        assert "key" not in answer.json()
    assert (await control.client.get(f"/api/keys/{wide['id']}")).json() == stored
    # Those that show a key its own rows open nothing to others.
    renewed = await control.client.post(f"{path}/{own['id']}/regenerate", headers=headers)
    assert renewed.status_code == 200
    assert renewed.json()["key"] != own["key"]
    # To end a key is always allowed.
    ended = await control.client.delete(f"{path}/{wide['id']}", headers=headers)
    assert ended.status_code == 200


async def test_who_leaves_may_lose_their_keys(control: Control) -> None:
    team = await made(control)
    ann = await person(control, "ann")
    members = f"/api/groups/{team['id']}/members"
    headers = control.as_principal("session", ann)
    for revokes in ("false", "true"):
        await control.client.post(members, json={"userId": ann})
        path = f"/api/me/groups/{team['id']}/keys"
        key = (await control.client.post(path, json={"name": "x"}, headers=headers)).json()
        await control.client.delete(f"{members}/{ann}", params={"revokeKeys": revokes})
        found = await control.client.get(f"/api/keys/{key['id']}")
        assert found.status_code == (404 if revokes == "true" else 200)
        refused = await control.client.post(path, json={"name": "x"}, headers=headers)
        assert refused.status_code == 404


async def test_a_group_tells_what_is_left_at_each_level(control: Control) -> None:
    firm = await made(control, "firm", monthlyUsageLimitUsd=10)
    team = await made(
        control,
        "team",
        parentId=firm["id"],
        rateLimits=[{"limit": 3, "window": 60}],
        tokenLimits=[{"limit": 50, "interval": "daily"}],
    )
    shown = (await control.client.get(f"/api/groups/{team['id']}/spending")).json()
    told = [
        (
            level["name"],
            [(one["field"], one["unit"], one["limit"], one["left"]) for one in level["limits"]],
        )
        for level in shown["levels"]
    ]
    assert told == [
        ("team", [("rateLimits", "requests", 3, 3), ("tokenLimits", "tokens", 50, 50)]),
        ("firm", [("monthlyUsageLimitUsd", "usd", 10, 10)]),
    ]
    assert (await control.client.get(f"/api/groups/{UUID}/spending")).status_code == 404
