"""Signing in by device code (RFC 8628): a program that waits, and a person who approves at the page."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fairlead.identity.oauth.device_codes import LIFETIME_S, PollPace, typed_code
from fairlead.identity.users import ensure_owner

from .conftest import ORIGIN, Server

pytestmark = pytest.mark.anyio

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def demote(con: Any) -> None:
    """Makes the person a member, of a gateway that somebody else owns."""
    con.execute("UPDATE users SET role = 'member', email = 'ada@example.org'")
    ensure_owner(con)


async def begin(server: Server, **bent: str) -> Any:
    server.oauth.device_codes._windows.clear()
    form = {"client_id": "fairlead-cli", "scope": "read", "device_name": "laptop", **bent}
    return await server.http.post("/oauth/device_authorization", data=form)


async def poll(server: Server, device: str, **bent: str) -> Any:
    server.unlimit()
    form = {"grant_type": GRANT, "device_code": device, "client_id": "fairlead-cli", **bent}
    return await server.http.post("/oauth/token", data=form)


async def decide(
    server: Server, session: str | None, code: str, action: str, origin: str = ORIGIN
) -> Any:
    server.oauth.user_codes._windows.clear()
    headers = {"origin": origin} | ({"cookie": f"auth_token={session}"} if session else {})
    form = {"user_code": code, "action": action}
    return await server.http.post("/oauth/device", data=form, headers=headers)


async def page(server: Server, session: str | None, **query: str) -> Any:
    server.oauth.user_codes._windows.clear()
    headers = {"cookie": f"auth_token={session}"} if session else {}
    return await server.http.get("/oauth/device", params=query, headers=headers)


async def test_a_person_approves_and_the_program_gets_a_token_once(
    server: Server, session: str
) -> None:
    began = await begin(server)
    assert began.status_code == 200, began.text
    assert began.headers["cache-control"] == "no-store"
    said = began.json()
    assert re.fullmatch(r"[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}", said["user_code"])
    assert said["verification_uri"] == f"{ORIGIN}/oauth/device"
    assert said["verification_uri_complete"].endswith(f"?user_code={said['user_code']}")
    waiting = await poll(server, said["device_code"])
    assert (waiting.status_code, waiting.json()["error"]) == (400, "authorization_pending")

    asked = await page(server, session, user_code=said["user_code"].lower().replace("-", " "))
    assert asked.status_code == 200
    for told in ("laptop", "192.0.2.1", "without secrets", "Anybody can send you a link"):
        assert told in asked.text
    done = await decide(server, session, said["user_code"], "approve")
    assert (done.status_code, "Signed in" in done.text) == (200, True)

    entries = await server.services.state.read(
        lambda con: con.execute(
            "SELECT actor_kind, sent FROM audit_log WHERE route = '/oauth/device'"
        ).fetchall()
    )
    assert [(kind, json.loads(sent)["device_name"]) for kind, sent in entries] == [
        ("session", "laptop")
    ]

    got = await poll(server, said["device_code"])
    assert got.status_code == 200, got.text
    token = got.json()
    assert (token["token_type"], token["scope"]) == ("Bearer", "read")
    assert token["access_token"].startswith("flm_")
    again = await poll(server, said["device_code"])
    assert again.json()["error"] == "invalid_grant"


async def test_who_denies_or_comes_late_signs_nobody_in(server: Server, session: str) -> None:
    said = (await begin(server)).json()
    assert "Denied" in (await decide(server, session, said["user_code"], "deny")).text
    assert (await poll(server, said["device_code"])).json()["error"] == "access_denied"
    # A decision stands.
    late = await decide(server, session, said["user_code"], "approve")
    assert late.status_code == 400

    said = (await begin(server)).json()
    await server.services.state.record(
        lambda con: con.execute("UPDATE oauth_device_codes SET expires_at_ms = 1")
    )
    assert (await poll(server, said["device_code"])).json()["error"] == "expired_token"
    assert (await decide(server, session, said["user_code"], "approve")).status_code == 400


async def test_the_page_asks_for_a_session_and_believes_its_own_form_alone(
    server: Server, session: str
) -> None:
    said = (await begin(server)).json()
    code = said["user_code"]
    login = await page(server, None, user_code=code)
    assert "Log in to connect" in login.text
    assert f"/oauth/device?user_code={code}" in login.text
    assert "Log in to connect" in (await decide(server, None, code, "approve")).text
    foreign = await decide(server, session, code, "approve", "https://evil.example")
    assert foreign.status_code == 400
    assert (await decide(server, session, code, "perhaps")).status_code == 400
    assert "eight letters" in (await page(server, session)).text
    assert "no such code" in (await page(server, session, user_code="BBBB-BBBB")).text
    assert (await poll(server, said["device_code"])).json()["error"] == "authorization_pending"


async def test_codes_cannot_be_tried_without_end(server: Server, session: str) -> None:
    cookie = {"cookie": f"auth_token={session}"}
    answers = [
        await server.http.get(f"/oauth/device?user_code=BCDF-GHJ{letter}", headers=cookie)
        for letter in "BCDFGHJKLMN"
    ]
    assert [each.status_code for each in answers[:10]] == [400] * 10
    assert answers[10].status_code == 429


async def test_a_member_does_not_sign_in_what_manages(server: Server, session: str) -> None:
    await server.services.state.record(demote)
    said = (await begin(server)).json()
    assert (await page(server, session, user_code=said["user_code"])).status_code == 403
    assert (await decide(server, session, said["user_code"], "approve")).status_code == 403
    assert (await poll(server, said["device_code"])).json()["error"] == "authorization_pending"


async def test_who_manages_no_more_when_the_token_is_taken_gets_none(
    server: Server, session: str
) -> None:
    said = (await begin(server)).json()
    await decide(server, session, said["user_code"], "approve")
    await server.services.state.record(demote)
    assert (await poll(server, said["device_code"])).json()["error"] == "access_denied"


@pytest.mark.parametrize(
    ("bent", "status", "error"),
    [
        ({"client_id": "another"}, 401, "invalid_client"),
        ({"scope": "everything"}, 400, "invalid_scope"),
        ({"device_name": "x" * 101}, 400, "invalid_request"),
        ({"device_name": "a\nb"}, 400, "invalid_request"),
    ],
)
async def test_a_beginning_that_is_wrong_is_refused(
    server: Server, bent: dict[str, str], status: int, error: str
) -> None:
    answer = await begin(server, **bent)
    assert (answer.status_code, answer.json()["error"]) == (status, error)


async def test_discovery_names_the_endpoint(server: Server) -> None:
    said = (await server.http.get("/.well-known/oauth-authorization-server")).json()
    assert said["device_authorization_endpoint"] == f"{ORIGIN}/oauth/device_authorization"
    assert GRANT in said["grant_types_supported"]


def test_polls_that_come_early_are_slowed_down() -> None:
    pace = PollPace()
    assert [pace.is_early("a", at) for at in (0, 5, 6, 12, 26)] == [False, False, True, True, False]
    assert pace.is_early("b", 7) is False


def test_a_code_is_read_however_it_was_typed() -> None:
    assert typed_code(" bcdf-ghjk ") == typed_code("BCDFGHJK") == "BCDFGHJK"
    assert LIFETIME_S == 600
