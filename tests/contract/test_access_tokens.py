"""Management access tokens: shown once, kept as hashes, gone when revoked."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.support.management import PASSWORD

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/auth/tokens"


async def make(control, **fields):
    return await control.client.post(PATH, json={"name": "ci", "scope": "read", **fields})


async def test_a_token_is_shown_once_and_kept_as_a_hash(control) -> None:
    answer = await make(control)
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    token = body["token"]
    assert re.fullmatch(r"flm_[A-Za-z0-9_-]{43}", token)
    assert {"id", "name", "scope", "token"} <= set(body)
    digest = hashlib.sha256(token.encode()).hexdigest()
    assert control.snapshot()["tokens"] == [
        {"id": body["id"], "hash": digest, "scope": "read", "expires_at_ms": None}
    ]
    listed = await control.client.get(PATH)
    assert listed.json()["total"] == 1
    assert token not in listed.text
    assert digest not in listed.text
    assert listed.json()["tokens"][0]["tokenPreview"] == f"{token[:8]}...{token[-4:]}"
    for path in control.data_dir.iterdir():
        assert not path.is_file() or token.encode() not in path.read_bytes()


async def test_a_revoked_token_is_gone_at_once(control) -> None:
    first, second = [(await make(control, name=name)).json() for name in ("one", "two")]
    gone = await control.client.delete(f"{PATH}/{first['id']}")
    assert gone.json() == {"success": True}
    assert [one["id"] for one in control.snapshot()["tokens"]] == [second["id"]]
    assert (await control.client.delete(f"{PATH}/{first['id']}")).status_code == 404


async def test_a_token_may_expire(control) -> None:
    answer = await make(control, expiresAt="2999-01-01T00:00:00+01:00")
    assert answer.json()["expiresAt"] == "2998-12-31T23:00:00.000Z"
    assert control.snapshot()["tokens"][0]["expires_at_ms"] == 32472140400000


async def test_a_token_ends_with_its_makers_power(control) -> None:
    body = {"email": "a@example.org", "name": "A", "role": "admin", "currentPassword": PASSWORD}
    user = (await control.client.post("/api/users", json=body)).json()
    maker = control.as_principal("session", user["id"], ["manage"])
    new = {"name": "t", "scope": "admin"}
    made = await control.client.post(PATH, json=new, headers=maker)
    assert made.json()["createdBy"] == user["id"]
    assert len(control.snapshot()["tokens"]) == 1
    change = {"role": "member", "currentPassword": PASSWORD}
    await control.client.patch(f"/api/users/{user['id']}", json=change)
    assert control.snapshot()["tokens"] == []


WRONG = [
    ({}, "name"),
    ({"name": "t"}, "scope"),
    ({"name": "", "scope": "read"}, "name"),
    ({"name": "x" * 201, "scope": "read"}, "name"),
    ({"name": "a\x00b", "scope": "read"}, "name"),
    ({"name": "t", "scope": "owner"}, "scope"),
    ({"name": "t", "scope": ["read"]}, "scope"),
    ({"name": "t", "scope": "read", "hash": "x"}, "hash"),
    ({"name": "t", "scope": "read", "expiresAt": "tomorrow"}, "expiresAt"),
    ({"name": "t", "scope": "read", "expiresAt": 7}, "expiresAt"),
    ({"name": "t", "scope": "read", "expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
]


@pytest.mark.parametrize(("body", "param"), WRONG)
async def test_a_wrong_body_is_refused_by_name(control, body, param) -> None:
    answer = await control.client.post(PATH, json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert (await control.client.get(PATH)).json()["total"] == 0
