"""The first owner: once, by page or by program, and the command line's way back in."""

from __future__ import annotations

import asyncio
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pytest
from pydantic import SecretStr

from fairlead.identity.users import ensure_owner

pytestmark = pytest.mark.anyio

PASSWORD = "a password of my own"
TOKEN = "what-the-start-printed"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def config(config):
    """Nothing is set up yet."""
    return config.model_copy(update={"initial_password": None, "setup_token": SecretStr(TOKEN)})


@pytest.fixture
def control(control):
    """Called as a browser on this machine calls the gateway."""
    control.client.headers["x-fairlead-host"] = "127.0.0.1:20128"
    control.client.headers["x-fairlead-peer"] = "127.0.0.1"
    return control


FOREIGN = [
    {"x-fairlead-host": "rebound.example", "origin": "http://rebound.example"},
    {"x-fairlead-host": "rebound.example"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "https://127.0.0.1:20128"},
    {"x-fairlead-host": "127.0.0.1.rebound.example"},
]


@pytest.mark.parametrize("headers", FOREIGN)
async def test_no_foreign_page_makes_itself_the_owner(control, headers) -> None:
    answer = await control.client.post("/setup", json={"password": PASSWORD}, headers=headers)
    assert answer.status_code == 403
    assert (await control.client.get("/api/auth/status")).json()["needsSetup"] is True


OWN = [
    {"origin": "http://127.0.0.1:20128"},
    {"x-fairlead-host": "localhost", "origin": "http://localhost"},
    {"x-fairlead-host": "[::1]:1"},
    {"x-fairlead-peer": "::1"},
]


@pytest.mark.parametrize("headers", OWN)
async def test_a_page_of_ours_does(control, headers) -> None:
    answer = await control.client.post("/setup", json={"password": PASSWORD}, headers=headers)
    assert answer.status_code == 201


# Whoever comes so may be anybody, although the socket's other end is this machine.
ELSEWHERE = [
    {"x-fairlead-peer": "192.0.2.1"},
    {"x-fairlead-host": "192.168.1.9:1", "origin": "http://192.168.1.9:1"},
    {"x-fairlead-host": "gw.example", "x-fairlead-scheme": "https"},
    {"x-forwarded-for": "192.0.2.1"},
    {"x-forwarded-proto": "https", "x-forwarded-host": "gw.example"},
    {"x-real-ip": "192.0.2.1"},
    {"forwarded": "for=192.0.2.1"},
    {"via": "1.1 proxy"},
    {"cf-connecting-ip": "192.0.2.1"},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
async def test_from_elsewhere_it_takes_what_the_start_printed(control, headers) -> None:
    post = control.client.post
    for token, why in ((None, "is needed"), ("", "is needed"), (TOKEN + "x", "is wrong")):
        body = {"password": PASSWORD} | ({} if token is None else {"token": token})
        answer = await post("/setup", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["param"]) == (403, "token")
        assert why in answer.json()["error"]["message"]
    assert (await control.client.get("/api/auth/status")).json()["needsSetup"] is True

    page = (await control.client.get("/setup", headers=headers)).text
    assert 'name="token"' in page
    assert "fairlead serve" in page
    fields = {"token": f" {TOKEN} ", "password": PASSWORD, "repeated": PASSWORD}
    answer = await post("/setup", content=urlencode(fields), headers=FORM | headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_on_this_machine_the_page_asks_for_no_token(control) -> None:
    assert 'name="token"' not in (await control.client.get("/setup")).text
    answer = await control.client.post("/setup", json={"password": PASSWORD, "token": "wrong"})
    assert answer.status_code == 403


@pytest.fixture
def proxied(control, config):
    """The settings say that a proxy stands before the gateway; its requests look like this machine's."""

    def say(**settings):
        control.app.state.services.config = config.model_copy(update=settings)

    return say


@pytest.mark.parametrize(
    "settings",
    [{"service_public_base_url": "https://gw.example"}, {"service_trust_proxy": True}],
)
async def test_behind_a_proxy_that_adds_nothing_settings_tell(control, proxied, settings) -> None:
    proxied(**settings)
    answer = await control.client.post("/setup", json={"password": PASSWORD})
    assert answer.status_code == 403
    answer = await control.client.post("/setup", json={"password": PASSWORD, "token": TOKEN})
    assert answer.status_code == 201


async def test_without_passwords_nobody_is_set_up_with_one(control, proxied) -> None:
    proxied(
        service_oidc_issuer="https://id.example",
        service_oidc_client_id="c",
        service_oidc_local_auth_disabled=True,
    )
    page = await control.client.get("/setup")
    assert page.status_code == 403
    assert "<form" not in page.text
    assert "fairlead owner reset-password" in page.text
    answer = await control.client.post("/setup", json={"password": PASSWORD, "token": TOKEN})
    assert answer.status_code == 403
    assert (await control.client.get("/api/auth/status")).json()["needsSetup"] is True


async def test_it_never_opens_again_once_there_was_an_owner(control) -> None:
    """As after a start with INITIAL_PASSWORD and one without: an owner who has no password yet."""
    await control.app.state.services.state.database.write(ensure_owner)
    for path in ("/setup", "/"):
        answer = await control.client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (302, "/login")
    assert (await control.client.get("/login")).status_code == 200
    answer = await control.client.post("/setup", json={"password": PASSWORD, "token": TOKEN})
    assert answer.status_code == 409
    refused = await login(control, password=PASSWORD)
    assert refused.status_code == 403
    assert "fairlead owner reset-password" in refused.json()["error"]["message"]
    assert (await control.client.get("/api/auth/status")).json()["needsSetup"] is False


async def test_the_command_line_may_give_the_first_password(control) -> None:
    answer = await control.client.patch("/api/settings", json={"newPassword": PASSWORD})
    assert answer.status_code == 200, answer.text
    assert (await login(control, password=PASSWORD)).status_code == 200


async def login(control, **body: str):
    return await control.client.post("/api/auth/login", json=body)


async def test_every_way_in_leads_to_the_set_up_page(control) -> None:
    for path in ("/", "/login"):
        answer = await control.client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (302, "/setup")
    page = await control.client.get("/setup")
    assert page.status_code == 200
    assert '<input id="password" name="password" type="password"' in page.text
    assert (await control.client.get("/api/auth/status")).json()["needsSetup"] is True


async def test_the_form_makes_the_owner_once_and_signs_them_in(control) -> None:
    fields = {"email": "Ada@Example.org", "password": PASSWORD, "repeated": PASSWORD}
    answer = await control.client.post("/setup", content=urlencode(fields), headers=FORM)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert SimpleCookie(answer.headers["set-cookie"])["auth_token"].value
    [session] = control.snapshot()["sessions"]
    assert session["manages"] is True

    again = await control.client.post("/setup", content=urlencode(fields), headers=FORM)
    assert (again.status_code, again.headers["location"]) == (303, "/login")
    again = await control.client.post("/setup", json={"password": "another password"})
    assert again.status_code == 409
    assert (await control.client.get("/setup")).headers["location"] == "/login"

    for body in ({"password": PASSWORD}, {"email": " ADA@example.org", "password": PASSWORD}):
        assert (await login(control, **body)).status_code == 200
    assert (await login(control, email="owner@localhost", password=PASSWORD)).status_code == 401


async def test_a_program_sets_up_with_json(control) -> None:
    answer = await control.client.post("/setup", json={"password": PASSWORD})
    assert (answer.status_code, answer.json()) == (201, {"success": True})
    assert (await login(control, email="owner@localhost", password=PASSWORD)).status_code == 200


async def test_of_many_at_once_one_becomes_the_owner(control) -> None:
    bodies = [{"password": f"{PASSWORD} {n}"} for n in range(8)]
    answers = await asyncio.gather(*(control.client.post("/setup", json=b) for b in bodies))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    [winner] = [n for n, answer in enumerate(answers) if answer.status_code == 201]
    assert (await login(control, **bodies[winner])).status_code == 200


WRONG = [
    ({}, "password"),
    ({"password": "short"}, "password"),
    ({"password": "x" * 201}, "password"),
    ({"password": "your-password"}, "password"),
    ({"password": PASSWORD, "email": "nobody"}, "email"),
    ({"password": PASSWORD, "role": "owner"}, "role"),
    ({"password": ["a"]}, "password"),
]


@pytest.mark.parametrize(("body", "param"), WRONG)
async def test_a_wrong_body_is_refused_by_name(control, body, param) -> None:
    answer = await control.client.post("/setup", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert "short" not in answer.text.replace("at least", "")


async def test_the_page_says_what_is_wrong_and_keeps_the_address(control) -> None:
    fields = {"email": "ada@example.org", "password": PASSWORD, "repeated": "different"}
    answer = await control.client.post("/setup", content=urlencode(fields), headers=FORM)
    assert answer.status_code == 400
    assert "The two passwords differ." in answer.text
    assert 'value="ada@example.org"' in answer.text
    assert PASSWORD not in answer.text
    for content in (b"password=a&password=b", b"\xff", b"&" * 30 + b"a=1" * 3):
        answer = await control.client.post("/setup", content=content, headers=FORM)
        assert answer.status_code == 400
    assert (await control.client.get("/api/auth/status")).json()["needsSetup"] is True


async def test_the_command_line_resets_the_owner(control) -> None:
    await control.client.post("/setup", json={"password": PASSWORD})
    body = {"newPassword": "the next password"}
    session = control.as_principal("session", "u", ["manage"])
    path = "/api/auth/owner/password"
    assert (await control.client.post(path, json=body, headers=session)).status_code == 403
    assert (await control.client.post(path, json=body)).status_code == 200
    assert control.snapshot()["sessions"] == []
    assert (await login(control, password=PASSWORD)).status_code == 401
    assert (await login(control, password="the next password")).status_code == 200
