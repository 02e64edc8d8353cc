"""The page: who is told what is wrong, who signs in where, and what an approval comes to."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from fairlead.board.tools import TOOLS as BOARD_TOOLS
from fairlead.identity.users import ensure_owner
from tests.support.tool_client import REDIRECT, ToolClient, hidden_fields, query_of

from .conftest import ORIGIN

pytestmark = pytest.mark.anyio

PROMISED = {
    "cache-control": "no-store",
    "content-security-policy": "frame-ancestors 'none'; base-uri 'none'",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "content-type": "text/html; charset=utf-8",
}


def assert_page(answer: Any, status: int, said: str) -> None:
    """A page with the promised headers, and nobody is sent anywhere."""
    assert answer.status_code == status, answer.text
    assert said in answer.text
    assert {name: answer.headers[name] for name in PROMISED} == PROMISED
    assert "location" not in answer.headers


async def test_client_and_redirect_uri_are_judged_first_and_nobody_is_sent_there(
    server, tool, session
) -> None:
    evil = "https://evil.example/cb"
    unknown = [{"client_id": "nobody"}, {"client_id": None}, {"client_id": ""}]
    mismatch: list[dict[str, str | None]] = [
        {"redirect_uri": uri}
        for uri in (
            evil,
            None,
            "",
            REDIRECT + "/",
            REDIRECT + "?x=1",
            REDIRECT + "#x",
            REDIRECT.upper(),
            REDIRECT.replace("http", "https"),
            REDIRECT.replace("127.0.0.1", "127.0.0.2"),
            REDIRECT.replace("127.0.0.1", "localhost"),
            REDIRECT.replace("//", "//u@"),
            REDIRECT[:-1],
            "javascript:alert(1)",
            "http://127.0.0.1:0/callback",
        )
    ]
    # Everything else is wrong too: it is not looked at.
    worse = {"response_type": "token", "code_challenge": None, "resource": "x"}
    for bent in unknown:
        assert_page(await tool.page(**bent, **worse), 400, "Unknown client")
        assert_page(await tool.decide(session, **bent), 400, "Unknown client")
        assert_page(await tool.page(**bent, redirect_uri=evil), 400, "Unknown client")
    for bent in mismatch:
        assert_page(await tool.page(**bent, **worse), 400, "Redirect URI mismatch")
        assert_page(await tool.decide(session, **bent), 400, "Redirect URI mismatch")
    twice = f"&{urlencode({'redirect_uri': evil})}"
    assert_page(await tool.page(more=twice), 400, "Redirect URI mismatch")
    assert_page(await tool.page(more="&client_id=x"), 400, "Unknown client")
    assert_page(await tool.page(more="&x=%zz"), 400, "Invalid request")
    assert_page(await tool.page(more="&x=%ff"), 400, "Invalid request")


FAULTS: list[tuple[dict[str, str | None], str, str]] = [
    ({"response_type": "token"}, "", "unsupported_response_type"),
    ({"response_type": "code token"}, "", "unsupported_response_type"),
    ({"response_type": None}, "", "invalid_request"),
    ({"code_challenge": None}, "", "invalid_request"),
    ({"code_challenge": ""}, "", "invalid_request"),
    ({"code_challenge": "x" * 42}, "", "invalid_request"),
    ({"code_challenge": "x" * 44}, "", "invalid_request"),
    ({"code_challenge": "x" * 42 + "="}, "", "invalid_request"),
    ({"code_challenge_method": "plain"}, "", "invalid_request"),
    ({"code_challenge_method": "s256"}, "", "invalid_request"),
    ({"code_challenge_method": None}, "", "invalid_request"),
    ({}, "&code_challenge=x", "invalid_request"),
    ({}, "&state=other", "invalid_request"),
    ({}, "&response_type=code", "invalid_request"),
    ({"resource": None}, "", "invalid_target"),
    ({"resource": ""}, "", "invalid_target"),
    ({}, f"&resource={quote(ORIGIN)}/mcp/rpc", "invalid_target"),
    ({"resource": f"{ORIGIN}/mcp/rpc/"}, "", "invalid_target"),
    ({"resource": f"{ORIGIN}/mcp"}, "", "invalid_target"),
    ({"resource": f"{ORIGIN}/MCP/RPC"}, "", "invalid_target"),
    ({"resource": f"{ORIGIN}/mcp/%72pc"}, "", "invalid_target"),
    ({"resource": f"{ORIGIN}/mcp/rpc?x"}, "", "invalid_target"),
    ({"resource": f"{ORIGIN}/mcp/rpc#x"}, "", "invalid_target"),
    ({"resource": "http://127.0.0.1:1/mcp/rpc"}, "", "invalid_target"),
    ({"resource": "https://evil.example/mcp/rpc"}, "", "invalid_target"),
    ({"resource": "/mcp/rpc"}, "", "invalid_target"),
]


async def test_what_else_is_wrong_is_told_to_the_client(server, tool, session) -> None:
    for bent, more, error in FAULTS:
        for answer in (
            await tool.page(more=more, **bent),
            await tool.page(more=more, cookie=session, **bent),
            await tool.decide(session, more=more, **bent),
        ):
            assert answer.status_code == 302, (bent, more)
            to, _, _ = answer.headers["location"].partition("?")
            said = query_of(answer.headers["location"])
            assert (to, said["error"], said["iss"]) == (REDIRECT, error, ORIGIN), (bent, more)
            assert said["error_description"]
            assert said.get("state") == (None if "state=" in more else "st-1")
            assert answer.headers["cache-control"] == "no-store"


async def test_scheme_and_host_of_the_resource_have_no_case(server, tool, session) -> None:
    loud = ToolClient(server.http, "http://localhost:20128", {"x-fairlead-host": "localhost:20128"})
    await loud.register()
    answer = await loud.page(cookie=session, resource="HTTP://LocalHost:20128/mcp/rpc")
    assert_page(answer, 200, "Approve access")


async def test_nobody_is_set_up(server, tool) -> None:
    state = server.services.state
    await state.record(lambda con: con.execute("DELETE FROM users"))
    server.services.config = server.services.config.model_copy(update={"initial_password": None})
    answer = await tool.page()
    assert_page(answer, 503, "Set up fairlead first")
    assert "Continue with SSO" not in answer.text
    # What is wrong with the request itself is told before.
    assert (await tool.page(resource=None)).status_code == 302


async def test_without_a_session_the_person_logs_in_right_here(server, tool) -> None:
    more = "&return_to=https%3A%2F%2Fevil.example&scope=openid%20email"
    answer = await tool.page(more=more)
    assert_page(answer, 200, "Log in to connect")
    assert "Test tool" in answer.text
    assert 'action="/login"' in answer.text
    assert "Continue with SSO" not in answer.text
    # The whole request is kept for the way back, and a `return_to` of the client's leads nowhere.
    back = hidden_fields(answer.text)["return_to"]
    assert back.startswith("/oauth/authorize?")
    found = parse_qs(urlsplit(back).query)
    assert found == {
        **{name: [value] for name, value in tool.asked().items()},
        "return_to": ["https://evil.example"],
        "scope": ["openid email"],
    }
    assert 'href="https://evil' not in answer.text


async def test_the_consent_page_shows_where_the_answer_goes(server, session) -> None:
    uri = "https://a.example/cb?x=1&y=%2f"
    for name, shown in (
        ("", "This application"),
        ("\u202e", "This application"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("Clau\u202ede\u0000 \u2066x", "Claude x"),
        ('" onload="x', "&#34; onload=&#34;x"),
    ):
        server.unlimit()
        tool = ToolClient(server.http, ORIGIN, redirect_uri=uri)
        await tool.register(name)
        answer = await tool.page(cookie=session)
        assert_page(answer, 200, f"<bdi>{shown}</bdi>?")
        assert "<b>https://a.example/cb?x=1&amp;y=%2f</b>" in answer.text
        assert "projects, todos, sprints and tags" in answer.text
        assert "owner@localhost" in answer.text
        assert hidden_fields(answer.text) == tool.asked()
        assert "<script" not in answer.text
        assert "\u202e" not in answer.text


# What people read, by the part of the board that a tool is about.
NAMED = {
    "people": "see the names and e-mail addresses of everybody",
    "members": "add and remove members of your projects and change their roles",
    **dict.fromkeys(
        ("projects", "board", "todos", "sprints", "tags"),
        "read and manage projects, todos, sprints and tags",
    ),
}


async def test_the_consent_page_names_all_that_a_token_may_do(server, tool, session) -> None:
    """Each tool that the token opens, and how far the person's own power takes it."""
    await tool.register("t")
    page = " ".join((await tool.page(cookie=session)).text.split())
    for name in (each.name for each in BOARD_TOOLS):
        assert NAMED[name.partition("_")[0]] in page, name
    assert "every project</b>, other people's too" in page

    def demote(con: Any) -> None:
        con.execute("UPDATE users SET role = 'member', email = 'ada@example.org'")
        ensure_owner(con)

    await server.services.state.record(demote)
    server.unlimit()
    page = (await tool.page(cookie=session)).text
    assert "see the names and e-mail addresses of everybody who has an account here." in page
    assert "every project" not in page


async def test_approve_and_deny(server, tool, session) -> None:
    approved = await tool.decide(session)
    assert approved.status_code == 302
    said = query_of(approved.headers["location"])
    assert set(said) == {"code", "state", "iss"}
    assert (said["state"], said["iss"]) == (tool.state, ORIGIN)
    assert len(said["code"]) >= 43
    assert approved.headers["cache-control"] == "no-store"
    denied = query_of((await tool.decide(session, "deny")).headers["location"])
    assert (denied["error"], denied["state"], denied["iss"]) == ("access_denied", "st-1", ORIGIN)
    for action, more in ((None, ""), ("", ""), ("maybe", ""), ("approve", "&action=deny")):
        assert_page(await tool.decide(session, action, more=more), 400, "Invalid request")
    # Each approval is one of its own.
    again = query_of((await tool.decide(session)).headers["location"])
    assert again["code"] != said["code"]


async def test_state_comes_back_as_it_was(server, tool, session) -> None:
    for state in ("a b+c%20d&e=f#g;h/é\U0001f980", "'\"<>\\", "x" * 2000):
        tool.state = state
        page = await tool.page(cookie=session)
        assert hidden_fields(page.text)["state"] == state
        answer = await tool.decide(session)
        assert query_of(answer.headers["location"])["state"] == state
    without = await tool.decide(session, state=None)
    assert set(query_of(without.headers["location"])) == {"code", "iss"}


async def test_the_query_of_the_redirect_uri_is_kept(server, session) -> None:
    tool = ToolClient(server.http, ORIGIN, redirect_uri="https://a.example/é?x=a%20b&y")
    await tool.register()
    for action in ("approve", "deny"):
        location = (await tool.decide(session, action)).headers["location"]
        assert location.startswith("https://a.example/%C3%A9?x=a%20b&y&"), location


async def test_another_port_of_this_machine_is_the_same_address(server, tool, session) -> None:
    here = REDIRECT.replace("53111", "61234")
    answer = await tool.decide(session, redirect_uri=here)
    assert answer.headers["location"].startswith(f"{here}?code=")
    code = query_of(answer.headers["location"])["code"]
    # The exchange names the address that was asked for.
    assert (await tool.exchange(code)).json()["error"] == "invalid_grant"
    assert (await tool.exchange(code, redirect_uri=here)).status_code == 200


async def test_the_form_must_come_from_our_own_page(server, tool, session) -> None:
    refused: list[dict[str, str]] = [
        {},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:20129"},
        {"origin": "http://127.0.0.1"},
        {"origin": "http://localhost:20128"},
        {"origin": "https://127.0.0.1:20128"},
        {"origin": f"{ORIGIN}/"},
        {"origin": f"{ORIGIN}.evil.example"},
        {"origin": "null", "referer": f"{ORIGIN}/oauth/authorize"},
        {"origin": "https://evil.example", "referer": f"{ORIGIN}/oauth/authorize"},
        {"referer": "https://evil.example/"},
        {"referer": f"{ORIGIN}.evil.example/"},
        {"referer": f"https://evil.example/?{ORIGIN}/"},
        {"referer": "about:blank"},
        {"referer": "http://[x"},
        {"sec-fetch-site": "same-origin"},
    ]
    for headers in refused:
        assert_page(await tool.decide(session, headers=headers), 400, "Invalid request origin")
    for headers in (
        {"origin": ORIGIN},
        {"referer": f"{ORIGIN}/oauth/authorize?x"},
        {"referer": ORIGIN},
        {"origin": ORIGIN, "referer": "https://evil.example/"},
    ):
        answer = await tool.decide(session, headers=headers)
        assert "code" in query_of(answer.headers["location"]), headers


async def test_a_session_that_is_gone_leads_back_to_the_page(server, tool) -> None:
    answer = await tool.decide("no such session", more="&x=a%20b")
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert location.startswith("/oauth/authorize?")
    assert query_of(location) == {**tool.asked(), "x": "a b"}
    assert_page(await server.http.get(location), 200, "Log in to connect")


async def test_only_a_form_is_read(server, tool, session) -> None:
    headers = {"origin": ORIGIN, "content-type": "application/json"}
    answer = await tool.decide(session, headers=headers)
    assert_page(answer, 400, "Invalid request")


async def test_where_nothing_says_who_we_are_nothing_is_served(server, session) -> None:
    tool = ToolClient(server.http, ORIGIN, {"x-fairlead-host": "rebound.example"})
    assert (await tool.register()).status_code == 201
    assert_page(await tool.page(cookie=session), 503, "Not reachable")
    assert_page(await tool.decide(session), 503, "Not reachable")
    for answer in (await tool.exchange("x"), await tool.refresh("x")):
        assert (answer.status_code, answer.json()["error"]) == (503, "server_error")


async def test_with_single_sign_on_the_ways_are_beside_each_other(server, tool) -> None:
    config = server.services.config
    provider = {"service_oidc_issuer": "https://id.example", "service_oidc_client_id": "fairlead"}
    server.services.config = config.model_copy(update=provider)
    answer = await tool.page(more="&x=%2F")
    assert_page(answer, 200, "Continue with SSO")
    assert 'name="password"' in answer.text
    [link] = [part.split('"')[0] for part in answer.text.split('href="')[1:]]
    assert link.startswith("/api/auth/oidc/login?")
    back = query_of(link)["return_to"]
    assert back == f"/oauth/authorize?{urlencode(tool.asked())}&x=%2F"
    server.services.config = config.model_copy(
        update=provider | {"service_oidc_local_auth_disabled": True}
    )
    answer = await tool.page()
    assert_page(answer, 200, "Continue with SSO")
    assert 'name="password"' not in answer.text
