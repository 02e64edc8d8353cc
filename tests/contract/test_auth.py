"""Signing in: the cookie, the limit on guessing, and an end that holds everywhere."""

from __future__ import annotations

import asyncio
import hashlib
from http.cookies import SimpleCookie

import pytest
from argon2 import PasswordHasher

from fairlead.identity.users import ensure_owner, set_password_hash
from tests.support.management import PASSWORD

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

LOGIN = "/api/auth/login"


async def login(control, password: str = PASSWORD, **headers: str):
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await control.client.post(LOGIN, json={"password": password}, headers=sent)


async def store(control, digest: str) -> None:
    def work(con) -> None:
        set_password_hash(con, ensure_owner(con).id, digest)

    await control.app.state.services.state.commit(work)


def morsel(answer):
    return SimpleCookie(answer.headers["set-cookie"])["auth_token"]


async def test_the_cookie_is_opaque_hashed_at_rest_and_shut(control) -> None:
    answer = await login(control)
    signed_in = answer.json()
    assert answer.status_code == 200
    assert signed_in["success"] is True
    assert set(signed_in["user"]) == {"id", "email", "name"}
    assert signed_in["user"]["email"] == "owner@localhost"
    cookie = morsel(answer)
    assert cookie["httponly"]
    assert cookie["samesite"] == "lax"
    assert cookie["path"] == "/"
    assert not cookie["secure"]
    assert int(cookie["max-age"]) == 30 * 24 * 3600
    assert len(cookie.value) >= 43
    [session] = control.snapshot()["sessions"]
    assert session["hash"] == hashlib.sha256(cookie.value.encode()).hexdigest()
    token = cookie.value.encode()
    files = [path for path in control.data_dir.rglob("*") if path.is_file()]
    assert [path for path in files if token in path.read_bytes()] == []


async def test_the_cookie_is_secure_where_the_caller_used_https(control) -> None:
    assert morsel(await login(control, x_fairlead_scheme="https"))["secure"]


async def test_each_sign_in_makes_a_new_session_in_place_of_the_one_brought(control) -> None:
    first = morsel(await login(control)).value
    second = morsel(await login(control, cookie=f"auth_token={first}")).value
    assert first != second
    hashes = [session["hash"] for session in control.snapshot()["sessions"]]
    assert hashes == [hashlib.sha256(second.encode()).hexdigest()]


async def test_a_cookie_that_was_planted_is_never_taken_up(control) -> None:
    planted = "planted" * 8
    token = morsel(await login(control, cookie=f"auth_token={planted}")).value
    assert token != planted
    assert hashlib.sha256(planted.encode()).hexdigest() not in str(control.snapshot())


async def test_signing_out_ends_the_session_and_clears_the_cookie(control) -> None:
    token = morsel(await login(control)).value
    answer = await control.client.post(
        "/api/auth/logout", headers={"cookie": f"auth_token={token}"}
    )
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert (morsel(answer).value, morsel(answer)["max-age"]) == ("", "0")
    assert control.snapshot()["sessions"] == []
    assert (await control.client.post("/api/auth/logout")).status_code == 200


async def test_a_stored_password_counts_and_the_initial_one_no_longer(control) -> None:
    stored = PasswordHasher(time_cost=1, memory_cost=1024).hash("stored password")
    await store(control, stored)
    assert (await login(control)).status_code == 401
    assert (await login(control, "stored password")).status_code == 200


async def test_without_any_password_the_answer_asks_for_set_up(control) -> None:
    services = control.app.state.services
    services.config = services.config.model_copy(update={"initial_password": None})
    await services.state.database.write(lambda con: con.execute("DELETE FROM users") and None)
    for _ in range(7):
        answer = await login(control)
        assert answer.status_code == 403
        assert answer.json()["needsSetup"] is True


async def test_a_body_without_a_password_is_refused_and_not_echoed(control) -> None:
    for body in ({}, {"password": ""}, {"password": "x" * 201}, {"password": 1}):
        answer = await control.client.post(LOGIN, json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "password")
        assert "xxx" not in answer.text


async def test_five_failures_lock_the_address_even_for_the_right_password(control) -> None:
    for _ in range(5):
        answer = await login(control, "wrong", x_fairlead_peer="203.0.113.9")
        assert (answer.status_code, answer.json()["error"]["message"]) == (401, "Invalid password")
    for spelling in ("203.0.113.9", "::ffff:203.0.113.9"):
        answer = await login(control, x_fairlead_peer=spelling)
        assert answer.status_code == 429
        assert 890 <= int(answer.headers["retry-after"]) <= 900
    elsewhere = await login(control, x_fairlead_peer="203.0.113.10", x_forwarded_for="203.0.113.9")
    assert elsewhere.status_code == 200


async def test_guesses_at_the_same_time_do_not_slip_past_the_limit(control) -> None:
    stored = PasswordHasher(time_cost=1, memory_cost=1024).hash("stored password")
    await store(control, stored)
    answers = await asyncio.gather(*(login(control, f"guess {n}") for n in range(15)))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [401] * 5 + [429] * 10
