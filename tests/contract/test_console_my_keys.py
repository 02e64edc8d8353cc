"""A member's own console: the keys of their groups, made, rotated and revoked without a right to manage."""

from __future__ import annotations

import json
import re

import pytest

from tests.contract.test_console import MARKUP, add_person, post
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console_reasons import text_of

pytestmark = pytest.mark.anyio


async def make_group(control, name: str, *members: str, role: str = "member", **fields) -> str:
    made = await control.client.post("/api/groups", json={"name": name, **fields})
    assert made.status_code == 201, made.text
    for member in members:
        body = {"userId": member, "role": role}
        added = await control.client.post(f"/api/groups/{made.json()['id']}/members", json=body)
        assert added.status_code == 200, added.text
    return made.json()["id"]


def user_id(who: dict[str, str]) -> str:
    return json.loads(who["x-fairlead-principal"])["id"]


@pytest.fixture
async def ann(control) -> dict[str, str]:
    return await add_person(control, "member", "ann")


async def test_a_member_makes_rotates_and_revokes_their_key_by_forms(control, ann) -> None:
    ann_id = user_id(ann)
    group = await make_group(control, f"team {MARKUP}", ann_id, monthlyUsageLimitUsd=20)
    page = await control.client.get("/dashboard/my-keys", headers=ann)
    assert page.status_code == 200
    assert "of $20.00" in text_of(page.text)
    assert "<script>alert(1)" not in page.text
    typed = {"act": "create", "group": group, "name": "laptop", "dailyUsageLimitUsd": "0.05"}
    made = await post(control, ann, "/dashboard/my-keys", **typed)
    assert made.status_code == 201, made.text
    (text,) = re.findall(r'id="secret" value="(sk-[^"]+)"', made.text)
    assert "/dashboard/keys/" not in made.text, "that page is not for members"
    (key,) = (await control.client.get("/api/keys")).json()["keys"]
    assert (key["groupId"], key["madeBy"]) == (group, ann_id)
    assert (key["usageLimitEnabled"], key["dailyUsageLimitUsd"]) == (True, 0.05)
    listed = (await control.client.get("/dashboard/my-keys", headers=ann)).text
    assert "laptop" in listed
    assert text not in listed
    chosen = {"group": group, "key": key["id"]}
    question = await post(control, ann, "/dashboard/my-keys", act="regenerate", **chosen)
    assert "refused at once" in text_of(question.text)
    rotated = await post(
        control, ann, "/dashboard/my-keys", act="regenerate", confirmed="yes", **chosen
    )
    assert text not in rotated.text
    assert re.search(r'id="secret" value="sk-', rotated.text)
    gone = await post(control, ann, "/dashboard/my-keys", act="revoke", confirmed="yes", **chosen)
    assert gone.status_code == 303
    assert (await control.client.get("/api/keys")).json()["keys"] == []


async def test_a_member_reaches_no_group_of_others_and_no_key_of_others(control, ann) -> None:
    ann_id = user_id(ann)
    mine = await make_group(control, "mine", ann_id)
    others = await make_group(control, "others")
    for group_id in (mine, others):
        body = {"name": f"operator's {group_id}", "groupId": group_id}
        assert (await control.client.post("/api/keys", json=body)).status_code == 201
    page = (await control.client.get("/dashboard/my-keys", headers=ann)).text
    assert f"operator&#39;s {mine}" in page
    assert others not in page
    assert 'value="revoke"' not in page, "the key is an operator's"
    for group in (others, "../../keys", ""):
        typed = {"act": "create", "group": group, "name": "x"}
        answer = await post(control, ann, "/dashboard/my-keys", **typed)
        assert answer.status_code in (400, 404), group
    keys = (await control.client.get("/api/keys")).json()["keys"]
    theirs = next(each for each in keys if each["groupId"] == mine)
    revoked = await post(
        control,
        ann,
        "/dashboard/my-keys",
        act="revoke",
        confirmed="yes",
        group=mine,
        key=theirs["id"],
    )
    assert revoked.status_code == 403
    assert len((await control.client.get("/api/keys")).json()["keys"]) == 2


async def test_somebody_without_a_group_is_told_so_and_sees_the_way_there(control, ann) -> None:
    page = (await control.client.get("/dashboard/my-keys", headers=ann)).text
    assert "You are in no group" in page
    board = (await control.client.get("/board", headers=ann)).text
    assert 'href="/dashboard/my-keys"' in board
    assert 'href="/dashboard/keys"' not in board
