"""`/mcp`: sessions and static tokens, the simple form, and what a cookie alone may not do."""

from __future__ import annotations

import json

import pytest

from fairlead.identity.users import insert_user, new_user

from .conftest import session_of, static_token

pytestmark = pytest.mark.anyio


async def test_the_bootstrap_endpoint_takes_a_session_or_a_static_token_only(owner) -> None:
    call = {"tool": "projects_list", "input": {}}
    for shown in (f"Bearer {owner.access}", "Bearer flb_unknown", "Bearer", "Basic eDp5"):
        for extra in ({}, {**owner.session, "x-fairlead": "1"}):
            answer = await owner.legacy(call, authorization=shown, **extra)
            assert answer.status_code == 401
            assert answer.json() == {
                "ok": False,
                "error": {
                    "code": "AUTH_REQUIRED",
                    "message": "Authentication required",
                    "details": {},
                },
            }
            assert "www-authenticate" not in answer.headers
    answer = await owner.legacy(call)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "AUTH_REQUIRED")
    for right in (
        {"authorization": f"Bearer {owner.static}"},
        {**owner.session, "x-fairlead": "1"},
    ):
        answer = await owner.legacy(call, **right)
        assert answer.status_code == 200
        assert answer.json() == {
            "ok": True,
            "data": {"projects": [], "nextCursor": None},
            "meta": {},
        }


async def test_a_cookie_alone_changes_nothing(owner) -> None:
    call = {"tool": "projects_create", "input": {"name": "x"}}
    for extra in ({}, {"x-fairlead": "0"}):
        answer = await owner.legacy(call, **owner.session, **extra)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")
    for origin in ("http://evil.example", "null"):
        sent = {**owner.session, "x-fairlead": "1", "origin": origin}
        assert (await owner.legacy(call, **sent)).status_code == 403
    listed = await owner.legacy({"tool": "projects_list"}, authorization=f"Bearer {owner.static}")
    assert listed.json()["data"]["projects"] == []


async def test_the_bootstrap_endpoint_tells_what_it_can(owner) -> None:
    for path in ("/mcp", "/mcp/"):
        answer = await owner.http.get(path)
        assert answer.status_code == 200
        said = answer.json()
        assert (said["ok"], said["meta"]) == (True, {"adapterVersion": 1})
        assert said["data"]["auth"]["authenticated"] is False
        assert said["data"]["implementedTools"] == []
    bearer = {"authorization": f"Bearer {owner.static}"}
    said = (await owner.http.get("/mcp", headers=bearer)).json()["data"]
    assert said["auth"]["authenticated"] is True
    assert "gateway_health" in said["implementedTools"]
    assert (await owner.http.get("/mcp", headers={"authorization": "Bearer x"})).status_code == 401
    # Clients of the protocol ask for a stream there, and are told that there is none.
    answer = await owner.http.get("/mcp", headers={**bearer, "accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert (await owner.http.delete("/mcp", headers=bearer)).status_code == 405


async def test_the_simple_form_says_what_is_wrong(owner) -> None:
    bearer = {"authorization": f"Bearer {owner.static}"}
    for said, status, code in (
        (b"{", 400, "VALIDATION_ERROR"),
        (b"[]", 400, "VALIDATION_ERROR"),
        ({}, 400, "VALIDATION_ERROR"),
        ({"tool": "projects_list", "input": []}, 400, "VALIDATION_ERROR"),
        ({"tool": "projects_list", "more": 1}, 400, "VALIDATION_ERROR"),
        ({"tool": "nothing"}, 404, "NOT_FOUND"),
        ({"tool": "projects_get", "input": {"projectId": "x"}}, 404, "NOT_FOUND"),
        ({"tool": "projects_create", "input": {}}, 400, "VALIDATION_ERROR"),
    ):
        answer = await owner.legacy(said, **bearer)
        assert answer.status_code == status, said
        error = answer.json()["error"]
        assert (answer.json()["ok"], error["code"]) == (False, code)
        assert error.keys() == {"code", "message", "details"}
    dotted = await owner.legacy({"tool": "projects.list", "input": {}}, **bearer)
    assert dotted.json()["ok"] is True


async def test_static_tokens_are_made_listed_and_revoked_by_their_person(owner) -> None:
    me = "/api/me/tokens"
    made = await owner.http.post(me, json={"name": "laptop"}, headers=owner.session)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    text = made.json()["token"]
    assert text.startswith("flb_")
    bearer = {"authorization": f"Bearer {text}"}
    assert (await owner.legacy({"tool": "projects_list"}, **bearer)).status_code == 200
    listed = (await owner.http.get(me, headers=owner.session)).json()
    assert [each["name"] for each in listed["items"]] == ["laptop", "test"]
    assert text not in json.dumps(listed)
    stored = await owner.app.state.services.state.read(
        lambda con: con.execute("SELECT * FROM static_tokens").fetchall()
    )
    assert text not in repr(stored)
    gone = await owner.http.delete(f"{me}/{made.json()['id']}", headers=owner.session)
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await owner.legacy({"tool": "projects_list"}, **bearer)).status_code == 401
    again = await owner.http.delete(f"{me}/{made.json()['id']}", headers=owner.session)
    assert again.status_code == 404
    listed = (await owner.http.get(me, headers=owner.session)).json()["items"]
    assert [each["revokedAt"] is not None for each in listed] == [True, False]
    # Nobody else's.
    user = new_user("ada@example.org", "ada", "member", None)
    await owner.app.state.services.state.record(lambda con: insert_user(con, user))
    other = session_of(owner, user.id)
    assert (await owner.http.get(me, headers=other)).json()["items"] == []
    answer = await owner.http.delete(f"{me}/{listed[1]['id']}", headers=other)
    assert answer.status_code == 404
    # Its person may not sign in any more: neither may the token.
    held = await static_token(owner, user.id)
    assert (
        await owner.legacy({"tool": "projects_list"}, authorization=f"Bearer {held}")
    ).is_success
    await owner.app.state.services.state.record(
        lambda con: con.execute("UPDATE users SET is_active = false WHERE id = ?", [user.id])
    )
    answer = await owner.legacy({"tool": "projects_list"}, authorization=f"Bearer {held}")
    assert answer.status_code == 401
