"""Accounts: sessions that are listed and ended, passwords that change, users who come and go."""

from __future__ import annotations

from http.cookies import SimpleCookie

import pytest

from tests.support.management import PASSWORD

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

NEW = "words that nobody used before"
MEMBER = {"email": "member@example.org", "name": "Member", "password": "the member's words"}


async def login(control, password: str = PASSWORD, **more: str) -> str:
    """The cookie of a fresh session."""
    email = {"email": more.pop("email")} if "email" in more else {}
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    answer = await control.client.post(
        "/api/auth/login", json={"password": password, **email}, headers=headers
    )
    assert answer.status_code == 200, answer.text
    # The next one signs in somewhere else.
    control.client.cookies.clear()
    return SimpleCookie(answer.headers["set-cookie"])["auth_token"].value


async def owner_id(control) -> str:
    return (await control.client.get("/api/auth/me")).json()["id"]


async def as_user(control, cookie: str, *, email: str | None = None) -> dict[str, str]:
    """What the relay says of a session of this user (the owner by default)."""
    users = (await control.client.get("/api/users")).json()["users"]
    [user] = [one for one in users if one["email"] == (email or "owner@localhost")]
    scopes = ["manage"] if user["role"] != "member" else []
    principal = control.as_principal("session", user["id"], scopes)
    return principal | {"cookie": f"auth_token={cookie}"}


async def add_member(control, **fields: str):
    body = MEMBER | {"currentPassword": PASSWORD} | fields
    return await control.client.post("/api/users", json=body)


async def test_sessions_are_listed_with_where_they_came_from(control) -> None:
    await login(control, x_fairlead_peer="198.51.100.7", user_agent="Laptop\x1b[31m/1.0")
    here = await login(control, user_agent="Phone" * 100)
    listed = await control.client.get("/api/auth/sessions", headers=await as_user(control, here))
    newest, oldest = listed.json()["sessions"]
    assert (newest["isCurrent"], oldest["isCurrent"]) == (True, False)
    assert oldest["address"] == "198.51.100.7"
    assert "\x1b" not in oldest["userAgent"]
    assert len(newest["userAgent"]) == 200
    assert here not in listed.text
    for digest in (one["hash"] for one in control.snapshot()["sessions"]):
        assert digest not in listed.text


async def test_one_session_is_ended_or_all_but_this_one(control) -> None:
    cookies = [await login(control) for _ in range(3)]
    me = await as_user(control, cookies[0])
    sessions = (await control.client.get("/api/auth/sessions", headers=me)).json()["sessions"]
    victim = next(one for one in sessions if not one["isCurrent"])
    path = f"/api/auth/sessions/{victim['id']}"
    assert (await control.client.delete(path, headers=me)).status_code == 200
    assert (await control.client.delete(path, headers=me)).status_code == 404
    assert len(control.snapshot()["sessions"]) == 2
    ended = await control.client.delete("/api/auth/sessions", headers=me)
    assert ended.json() == {"success": True, "ended": 1}
    assert len(control.snapshot()["sessions"]) == 1
    # The command line is in nobody's session and ends them all.
    assert (await control.client.delete("/api/auth/sessions")).json()["ended"] == 1


async def test_nobody_sees_or_ends_another_users_sessions(control) -> None:
    assert (await add_member(control)).status_code == 201
    await login(control)
    cookie = await login(control, MEMBER["password"], email=MEMBER["email"])
    member = await as_user(control, cookie, email=MEMBER["email"])
    seen = (await control.client.get("/api/auth/sessions", headers=member)).json()["sessions"]
    assert [one["isCurrent"] for one in seen] == [True]
    everything = (await control.client.get("/api/auth/sessions")).json()["sessions"]
    [other] = [one for one in everything if one["id"] != seen[0]["id"]]
    answer = await control.client.delete(f"/api/auth/sessions/{other['id']}", headers=member)
    unknown = await control.client.delete("/api/auth/sessions/none", headers=member)
    assert (answer.status_code, answer.json()) == (404, unknown.json())
    assert [one["manages"] for one in control.snapshot()["sessions"]] == [True, False]


async def test_a_changed_password_ends_all_other_sessions(control) -> None:
    cookies = [await login(control) for _ in range(3)]
    me = await as_user(control, cookies[1])
    body = {"currentPassword": PASSWORD, "newPassword": NEW}
    answer = await control.client.post("/api/auth/password", json=body, headers=me)
    assert answer.json() == {"success": True}
    assert len(control.snapshot()["sessions"]) == 1
    assert (await control.client.get("/api/auth/me", headers=me)).json()["hasPassword"] is True
    refused = await control.client.post("/api/auth/login", json={"password": PASSWORD})
    assert refused.status_code == 401
    await login(control, NEW)


async def test_the_settings_change_the_password_too(control) -> None:
    cookie = await login(control)
    me = await as_user(control, cookie)
    body = {"newPassword": NEW, "currentPassword": PASSWORD}
    for wrong, status in (
        ({"newPassword": NEW}, 400),
        ({"newPassword": NEW, "currentPassword": "wrong"}, 401),
        ({"newPassword": "short", "currentPassword": PASSWORD}, 400),
        ({"newPassword": "your-password", "currentPassword": PASSWORD}, 400),
        ({"currentPassword": PASSWORD}, 400),
    ):
        answer = await control.client.patch("/api/settings", json=wrong, headers=me)
        assert answer.status_code == status, wrong
        assert "wrong" not in answer.text
    answer = await control.client.patch("/api/settings", json=body, headers=me)
    assert answer.status_code == 200
    assert NEW not in answer.text
    await login(control, NEW)


async def test_login_may_be_switched_off_by_an_operator(control) -> None:
    path = "/api/settings/require-login"
    assert (await control.client.get(path)).json() == {"requireLogin": True}
    body = {"requireLogin": False, "currentPassword": PASSWORD}
    assert (await control.client.put(path, json=body)).json() == {"requireLogin": False}
    assert control.snapshot()["settings"]["require_login"] is False
    # Nobody is somebody then, and a token would outlast that.
    nobody = control.as_principal("anonymous")
    new = {"name": "t", "scope": "admin"}
    answer = await control.client.post("/api/auth/tokens", json=new, headers=nobody)
    assert answer.status_code == 401
    answer = await control.client.put(path, json=body, headers=nobody)
    assert answer.status_code == 401
    on = {"requireLogin": True, "currentPassword": PASSWORD}
    assert (await control.client.patch("/api/settings", json=on)).status_code == 200
    assert control.snapshot()["settings"]["require_login"] is True


async def test_login_stays_on_where_others_can_call(control) -> None:
    services = control.app.state.services
    services.config = services.config.model_copy(update={"host": "0.0.0.0"})
    body = {"requireLogin": False, "currentPassword": PASSWORD}
    answer = await control.client.patch("/api/settings", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (409, "requireLogin")


async def test_without_brute_force_protection_nobody_is_locked_out(control) -> None:
    body = {"bruteForceProtection": False, "currentPassword": PASSWORD}
    assert (await control.client.patch("/api/settings", json=body)).status_code == 200
    for _ in range(7):
        answer = await control.client.post("/api/auth/login", json={"password": "wrong"})
        assert answer.status_code == 401
    await login(control)


async def test_users_come_change_and_go(control) -> None:
    made = await add_member(control)
    assert made.status_code == 201
    assert MEMBER["password"] not in made.text
    user = made.json()
    assert (user["role"], user["hasPassword"], user["isActive"]) == ("member", True, True)
    assert (await add_member(control, email="MEMBER@example.org")).status_code == 409
    await login(control, MEMBER["password"], email="Member@Example.ORG ")
    assert [one["manages"] for one in control.snapshot()["sessions"]] == [False]

    path = f"/api/users/{user['id']}"
    current = {"currentPassword": PASSWORD}
    assert (await control.client.patch(path, json={"role": "admin"})).status_code == 400
    change = await control.client.patch(path, json={"role": "admin"} | current)
    assert change.json()["role"] == "admin"
    assert [one["manages"] for one in control.snapshot()["sessions"]] == [True]

    off = await control.client.patch(path, json={"isActive": False} | current)
    assert off.status_code == 200
    assert control.snapshot()["sessions"] == []
    body = {"email": MEMBER["email"], "password": MEMBER["password"]}
    assert (await control.client.post("/api/auth/login", json=body)).status_code == 401
    assert (await control.client.delete(path)).status_code == 200
    assert (await control.client.delete(path)).status_code == 404


async def test_the_owner_stays(control) -> None:
    path = f"/api/users/{await owner_id(control)}"
    current = {"currentPassword": PASSWORD}
    assert (await control.client.delete(path)).status_code == 409
    for change in ({"role": "member"}, {"isActive": False}):
        assert (await control.client.patch(path, json=change | current)).status_code == 409
    assert (await control.client.patch(path, json={"role": "owner"} | current)).status_code == 400
    moved = await control.client.patch(path, json={"email": "ada@example.org"} | current)
    assert moved.json()["email"] == "ada@example.org"
    await login(control, email="ada@example.org")
    await login(control)
    assert (await add_member(control)).status_code == 201
    admin = control.as_principal("session", "another admin", ["manage"])
    # Another operator is no user here, so the password cannot be theirs.
    answer = await control.client.patch(path, json={"name": "x"} | current, headers=admin)
    assert answer.status_code == 401


async def test_an_unknown_address_is_told_as_a_wrong_password(control) -> None:
    known = {"email": "owner@localhost", "password": "wrong"}
    unknown = {"email": "nobody@localhost", "password": "wrong"}
    answers = [await control.client.post("/api/auth/login", json=b) for b in (known, unknown)]
    assert answers[0].json()["error"] == answers[1].json()["error"]
    assert [answer.status_code for answer in answers] == [401, 401]


async def test_ten_attempts_a_minute_whatever_comes_of_them(control) -> None:
    for _ in range(10):
        await login(control, x_fairlead_peer="198.51.100.9")
    for path, body in (
        ("/api/auth/login", {"password": PASSWORD}),
        ("/api/auth/login/2fa", {"tempToken": "x", "code": "123456"}),
        ("/api/auth/2fa/confirm", {"code": "123456"}),
    ):
        answer = await control.client.post(
            path, json=body, headers={"x-fairlead-peer": "198.51.100.9"}
        )
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    # Nobody else is held up, and what a caller says of itself buys no more attempts.
    await login(control, x_fairlead_peer="198.51.100.10")
    answer = await control.client.post(
        "/api/auth/login",
        json={"password": PASSWORD},
        headers={"x-fairlead-peer": "198.51.100.9", "x-forwarded-for": "10.0.0.1"},
    )
    assert answer.status_code == 429


async def test_behind_a_trusted_proxy_limits_count_the_callers(control) -> None:
    services = control.app.state.services
    services.config = services.config.model_copy(update={"service_trust_proxy": True})
    for n in range(12):
        # The proxy added the last one; what stands before it is the caller's invention.
        await login(control, x_forwarded_for=f"10.0.0.1, 203.0.113.{n}")
    for n in range(5):
        wrong = {"x-forwarded-for": f"198.51.100.{n}, 203.0.113.99"}
        await control.client.post("/api/auth/login", json={"password": "no"}, headers=wrong)
    answer = await control.client.post(
        "/api/auth/login", json={"password": PASSWORD}, headers=wrong
    )
    assert answer.status_code == 429
    secure = await control.client.post(
        "/api/auth/login", json={"password": PASSWORD}, headers={"x-forwarded-proto": "https"}
    )
    assert "Secure" in secure.headers["set-cookie"]
