"""Which account somebody gets whom the identity provider sends for the first time, and what is asked of them."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pyotp
import pytest

from tests.support.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.support.processes import Gateway, expect, start_gateway

OWNER_PASSWORD = "the owner's own words"
PASSWORD = "words of somebody else"
REFUSED = "/?oidc_error=account"
Start = Callable[..., Gateway]


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with OidcProvider() as running:
        yield running


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, provider: OidcProvider) -> Iterator[Start]:
    with ExitStack() as stack:
        started: dict[str, Gateway] = {}

        def begin(joins: str) -> Gateway:
            if joins not in started:
                started[joins] = stack.enter_context(
                    start_gateway(
                        tmp_path_factory.mktemp("joining"),
                        INITIAL_PASSWORD=OWNER_PASSWORD,
                        SERVICE_OIDC_ISSUER=provider.issuer,
                        SERVICE_OIDC_CLIENT_ID=CLIENT_ID,
                        SERVICE_OIDC_CLIENT_SECRET=CLIENT_SECRET,
                        SERVICE_OIDC_JOIN_EXISTING=joins,
                    )
                )
            return started[joins]

        yield begin


def person(provider: OidcProvider, email: str | None = None) -> str:
    """The provider sends somebody whom nobody has seen; their address."""
    provider.reset()
    name = f"p{secrets.token_hex(4)}"
    email = email or f"{name}@example.org"
    provider.person = {"sub": name, "email": email, "email_verified": True, "name": "Ada"}
    return email


def user(gateway: Gateway, email: str, **fields: Any) -> str:
    body = {"email": email, "name": "Ada", "password": PASSWORD, **fields}
    answer = gateway.admin.post("/api/users", json=body | {"currentPassword": OWNER_PASSWORD})
    return str(expect(answer, 201)["id"])


def come(browser: httpx.Client) -> httpx.Response:
    """The whole way to the provider and back."""
    asked = browser.get("/api/auth/oidc/login", params={"return_to": "/login?x"})
    returned = httpx.get(asked.headers["location"], trust_env=False)
    return browser.get(returned.headers["location"])


def with_password(gateway: Gateway, email: str | None, password: str = PASSWORD) -> httpx.Client:
    browser = gateway.client()
    browser.headers["origin"] = gateway.url
    body = {"password": password} | ({"email": email} if email else {})
    answer = browser.post("/api/auth/login", json=body)
    expect(answer, 200)
    return browser


def who(browser: httpx.Client) -> str:
    return str(expect(browser.get("/api/auth/me"), 200)["id"])


def second_factor(gateway: Gateway, email: str) -> pyotp.TOTP:
    browser = with_password(gateway, email)
    made = browser.post("/api/auth/2fa/enrol", json={"currentPassword": PASSWORD})
    device = pyotp.TOTP(expect(made, 200)["secret"])
    expect(browser.post("/api/auth/2fa/confirm", json={"code": device.now()}), 200)
    return device


@pytest.mark.parametrize("role", ["member", "admin"])
def test_as_shipped_an_address_opens_no_account(
    start: Start, provider: OidcProvider, role: str
) -> None:
    gateway = start("false")
    email = person(provider)
    made = user(gateway, email, role=role)
    browser = gateway.client()
    assert come(browser).headers["location"] == REFUSED
    expect(browser.get("/api/auth/me"), 401)
    page = browser.get("/login", params={"oidc_error": "account"}).text
    assert "There is an account with your address" in page

    # Who is signed in to it connects the two.
    own = with_password(gateway, email)
    assert "Connect single sign-on" in own.get("/login").text
    assert come(own).headers["location"] == "/login?x"
    assert "Connect single sign-on" not in own.get("/login").text
    again = gateway.client()
    assert come(again).headers["location"] == "/login?x"
    assert who(again) == made


def test_an_address_that_nobody_has_is_a_new_member(start: Start, provider: OidcProvider) -> None:
    person(provider)
    browser = start("false").client()
    assert come(browser).headers["location"] == "/login?x"
    assert expect(browser.get("/api/auth/me"), 200)["role"] == "member"


def test_who_is_signed_in_to_another_account_joins_nothing(
    start: Start, provider: OidcProvider
) -> None:
    gateway = start("false")
    email, mine = person(provider), f"{secrets.token_hex(4)}@example.org"
    user(gateway, email)
    user(gateway, mine)
    assert come(with_password(gateway, mine)).headers["location"] == REFUSED


def test_the_owner_s_account_is_never_joined_by_its_address(
    start: Start, provider: OidcProvider
) -> None:
    gateway = start("true")
    [owner] = [
        one
        for one in expect(gateway.admin.get("/api/users"), 200)["users"]
        if one["role"] == "owner"
    ]
    email = person(provider)
    change = {"email": email, "currentPassword": OWNER_PASSWORD}
    expect(gateway.admin.patch(f"/api/users/{owner['id']}", json=change), 200)
    assert come(gateway.client()).headers["location"] == REFUSED
    assert come(with_password(gateway, None, OWNER_PASSWORD)).headers["location"] == "/login?x"
    browser = gateway.client()
    come(browser)
    assert who(browser) == owner["id"]


def test_joining_asks_for_the_second_factor_first(start: Start, provider: OidcProvider) -> None:
    gateway = start("true")
    email = person(provider)
    made = user(gateway, email, role="admin")
    device = second_factor(gateway, email)
    browser = gateway.client()
    browser.headers["origin"] = gateway.url

    def ask(code: str) -> httpx.Response:
        page = come(browser)
        assert page.status_code == 200, page.text
        assert page.headers["cache-control"] == "no-store"
        hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
        assert hidden["return_to"] == "/login?x"
        expect(browser.get("/api/auth/me"), 401)
        return browser.post("/login/2fa", data=hidden | {"code": code})

    assert ask("000000").status_code == 401
    # Nothing was joined: the account's owner may still refuse by doing nothing.
    expect(browser.get("/api/auth/me"), 401)
    # Each code counts once, and the present one has been taken to turn the second factor on.
    answer = ask(device.at(int(time.time()) + 30))
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?x")
    assert who(browser) == made
    [session] = expect(browser.get("/api/auth/sessions"), 200)["sessions"][:1]
    assert session["way"] == "oidc"
    # The next time it is asked for as well.
    later = gateway.client()
    assert 'name="code"' in come(later).text
    expect(later.get("/api/auth/me"), 401)
