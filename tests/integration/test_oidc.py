"""Single sign-on against a provider that listens on a socket and signs with keys of its own."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from tests.support.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.support.processes import Gateway, expect, start_gateway

PASSWORD = "the owner's own words"
LOGIN = "/api/auth/oidc/login"


@pytest.fixture(scope="module")
def running() -> Iterator[OidcProvider]:
    with OidcProvider() as provider:
        yield provider


@pytest.fixture
def provider(running: OidcProvider) -> OidcProvider:
    """The provider, well behaved, with a person whom nobody has seen."""
    running.reset()
    name = f"p{secrets.token_hex(4)}"
    running.person = {
        "sub": name,
        "email": f"{name}@example.org",
        "email_verified": True,
        "name": "Ada <b>Lovelace</b>",
    }
    return running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, running: OidcProvider) -> Iterator[Gateway]:
    with start_gateway(
        tmp_path_factory.mktemp("oidc"),
        INITIAL_PASSWORD=PASSWORD,
        SERVICE_OIDC_ISSUER=running.issuer,
        SERVICE_OIDC_CLIENT_ID=CLIENT_ID,
        SERVICE_OIDC_CLIENT_SECRET=CLIENT_SECRET,
        SERVICE_OIDC_JOIN_EXISTING="true",
    ) as started:
        started.canaries.append(CLIENT_SECRET)
        yield started
        started.assert_keeps_secrets()


@pytest.fixture
def browser(gateway: Gateway) -> httpx.Client:
    """Keeps cookies and goes where it is sent, when it is told to."""
    return gateway.client()


def to_provider(browser: httpx.Client, return_to: str = "/login") -> str:
    """Where the gateway sends the browser."""
    answer = browser.get(LOGIN, params={"return_to": return_to})
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def back(url: str) -> str:
    """Where the provider sends the browser, once the person agreed."""
    answer = httpx.get(url, trust_env=False)
    assert answer.status_code == 302
    return answer.headers["location"]


def sign_in(browser: httpx.Client, return_to: str = "/login") -> str:
    """The whole way; where it ends."""
    answer = browser.get(back(to_provider(browser, return_to)))
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def test_a_tool_client_s_request_is_taken_up_again(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    """From the page that asks for approval to the provider and back to the whole request."""
    body = {"client_name": "Tool", "redirect_uris": ["http://127.0.0.1:1/" + "x" * 1500]}
    registered = expect(browser.post("/oauth/register", json=body), 201)
    asked = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": registered["redirect_uris"][0],
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
        "state": "a\\b\n//evil.example/?" + "é" * 100,
        "resource": f"{gateway.url}/mcp/rpc",
        "return_to": "https://evil.example",
    }
    page = browser.get("/oauth/authorize", params=asked).text
    [link] = [part.split('"')[0] for part in page.split('href="')[1:]]
    went = browser.get(unescape(link))
    assert went.status_code == 302, went.text
    returned = browser.get(back(went.headers["location"]))
    location = urlsplit(returned.headers["location"])
    assert (location.scheme, location.netloc, location.path) == ("", "", "/oauth/authorize")
    assert {name: values[0] for name, values in parse_qs(location.query).items()} == asked
    consent = browser.get(returned.headers["location"])
    assert "Approve access" in consent.text


def find(gateway: Gateway, email: str) -> dict[str, Any]:
    users = expect(gateway.admin.get("/api/users", params={"limit": 500}), 200)["users"]
    [user] = [one for one in users if one["email"] == email]
    return user


def test_a_person_signs_in_and_is_the_same_the_next_time(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    assert sign_in(browser, "/login?from=a%20b") == "/login?from=a%20b"
    me = expect(browser.get("/api/auth/me"), 200)
    assert (me["email"], me["role"]) == (provider.person["email"], "member")
    # Somebody who can sign in is not yet somebody who may manage.
    expect(browser.get("/api/keys"), 403)
    [session] = expect(browser.get("/api/auth/sessions"), 200)["sessions"]
    assert (session["way"], session["isCurrent"]) == ("oidc", True)
    page = browser.get("/login").text
    assert "Ada &lt;b&gt;Lovelace&lt;/b&gt;" in page

    provider.person |= {"email": f"changed-{provider.person['email']}"}
    again = gateway.client()
    assert sign_in(again) == "/login"
    assert expect(again.get("/api/auth/me"), 200)["id"] == me["id"]


def test_what_the_provider_is_asked(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    first, second = to_provider(browser), to_provider(gateway.client())
    asked, other = (parse_qs(urlsplit(url).query) for url in (first, second))
    assert asked["redirect_uri"] == [f"{gateway.url}/api/auth/oidc/callback"]
    for name in ("state", "nonce", "code_challenge"):
        assert len(asked[name][0]) >= 43
        assert asked[name] != other[name]
    answer = browser.get(LOGIN)
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=lax", "Path=/api/auth/oidc", "Max-Age=600"):
        assert part in cookie
    for name in ("state", "nonce"):
        assert parse_qs(urlsplit(answer.headers["location"]).query)[name][0] not in cookie


def test_a_verified_address_leads_to_the_account_that_the_owner_made(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    body = {"email": provider.person["email"].upper(), "name": "Ada", "role": "admin"}
    made = expect(gateway.admin.post("/api/users", json=body | {"currentPassword": PASSWORD}), 201)
    sign_in(browser)
    assert expect(browser.get("/api/auth/me"), 200)["id"] == made["id"]
    expect(browser.get("/api/keys"), 200)
    # Another subject with the same address is somebody else, and gets nothing.
    provider.person |= {"sub": "somebody else"}
    assert sign_in(gateway.client()) == "/?oidc_error=token"


def test_an_address_may_come_from_userinfo(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    provider.userinfo = dict(provider.person)
    assert sign_in(browser) == "/login"
    assert find(gateway, provider.person["email"])["name"] == "Ada <b>Lovelace</b>"
    provider.userinfo = provider.person | {"sub": "another"}
    assert sign_in(gateway.client()) == "/?oidc_error=token"


def test_a_switched_off_account_stays_outside(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    sign_in(browser)
    user = find(gateway, provider.person["email"])
    body = {"isActive": False, "currentPassword": PASSWORD}
    expect(gateway.admin.patch(f"/api/users/{user['id']}", json=body), 200)
    expect(browser.get("/api/auth/me"), 401)
    assert sign_in(browser) == "/?oidc_error=token"


def without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda claims: {key: value for key, value in claims.items() if key != name}


def having(**changed: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda claims: claims | changed


WRONG_CLAIMS = [
    ("token", having(nonce="another")),
    ("token", without("nonce")),
    ("token", having(iss="http://127.0.0.1:1")),
    ("token", without("iss")),
    ("token", having(aud="another client")),
    ("token", having(aud=[CLIENT_ID, "another client"])),
    ("token", having(aud=[CLIENT_ID, "another"], azp="another")),
    ("token", without("aud")),
    ("token", having(exp=int(time.time()) - 3600)),
    ("token", without("exp")),
    ("token", having(exp="tomorrow")),
    ("token", having(iat=int(time.time()) + 86400)),
    ("token", without("iat")),
    ("token", having(sub="")),
    ("token", having(sub=7)),
    ("token", without("sub")),
    ("token", having(sub="x" * 256)),
    ("email", having(email_verified=False)),
    ("email", having(email_verified="true")),
    ("email", without("email_verified")),
    ("email", having(email="")),
    ("email", having(email="no address")),
    ("email", having(email=["a@example.org"])),
    ("email", having(email="a\n@example.org")),
    ("email", having(email="x" * 300 + "@example.org")),
]


@pytest.mark.parametrize(("code", "change"), WRONG_CLAIMS)
def test_a_wrong_id_token_signs_nobody_in(
    provider: OidcProvider, browser: httpx.Client, code: str, change: Any
) -> None:
    provider.claims = change
    assert sign_in(browser) == f"/?oidc_error={code}"
    assert "auth_token" not in browser.cookies


def unsigned(claims: dict[str, Any]) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none'})}.{part(claims)}."


def with_our_own_secret(claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(CLIENT_SECRET))


def with_a_strange_key(claims: dict[str, Any]) -> str:
    key = OidcProvider.new_key()
    return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


def cut(claims: dict[str, Any]) -> str:
    return with_a_strange_key(claims)[:-10]


@pytest.mark.parametrize(
    "sign", [unsigned, with_our_own_secret, with_a_strange_key, cut, lambda _: "a.b.c"]
)
def test_a_wrong_signature_signs_nobody_in(
    provider: OidcProvider, browser: httpx.Client, sign: Callable[[dict[str, Any]], str]
) -> None:
    provider.sign = sign
    assert sign_in(browser) == "/?oidc_error=token"
    assert "auth_token" not in browser.cookies


def test_an_answer_counts_in_the_browser_that_asked_and_once(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    url = back(to_provider(browser))
    assert gateway.client().get(url).headers["location"] == "/?oidc_error=state_invalid"
    other = gateway.client()
    to_provider(other)
    assert other.get(url).headers["location"] == "/?oidc_error=state_invalid"
    assert browser.get(url).headers["location"] == "/login"
    assert browser.get(url).headers["location"] == "/?oidc_error=state_invalid"


@pytest.mark.parametrize(
    "change",
    [
        lambda query: {key: value for key, value in query.items() if key != "state"},
        lambda query: query | {"state": query["state"][:-1]},
        lambda query: query | {"state": ""},
        lambda query: query | {"iss": "https://another.example"},
        lambda query: {key: value for key, value in query.items() if key != "iss"},
    ],
)
def test_a_mixed_up_answer_is_refused(
    provider: OidcProvider, browser: httpx.Client, change: Any
) -> None:
    parts = urlsplit(back(to_provider(browser)))
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    answer = browser.get(parts.path, params=change(query))
    assert answer.headers["location"] == "/?oidc_error=state_invalid"
    assert "auth_token" not in browser.cookies


def test_a_planted_cookie_is_no_errand(provider: OidcProvider, browser: httpx.Client) -> None:
    url = back(to_provider(browser))
    for planted in ("x", "", "AAAA" * 40):
        answer = httpx.get(url, cookies={"oidc_errand": planted}, trust_env=False)
        assert answer.headers["location"] == "/?oidc_error=state_invalid"


def test_a_person_who_cancels_is_told_so(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    provider.denies = True
    end = sign_in(browser)
    assert end == "/?oidc_error=provider"
    page = gateway.client(follow_redirects=True).get(end)
    assert "Single sign-on was cancelled or refused. Please try again." in page.text
    odd = gateway.client(follow_redirects=True).get("/?oidc_error=<script>")
    assert "<script>" not in odd.text


def test_a_link_leads_nowhere_else(provider: OidcProvider, browser: httpx.Client) -> None:
    for return_to in ("https://evil.example", "//evil.example", "/\\evil.example", "/%2f/evil"):
        assert sign_in(browser, return_to) == "/"


def test_keys_are_kept_from_one_sign_in_to_the_next(
    provider: OidcProvider, gateway: Gateway
) -> None:
    assert sign_in(gateway.client()) == "/login"
    asked_before = provider.paths.count("/jwks")
    assert sign_in(gateway.client()) == "/login"
    assert provider.paths.count("/jwks") == asked_before


def test_a_session_is_made_anew(provider: OidcProvider, browser: httpx.Client) -> None:
    browser.cookies.set("auth_token", "planted" * 8)
    sign_in(browser)
    tokens = {cookie.value for cookie in browser.cookies.jar if cookie.name == "auth_token"}
    assert any(not (token or "").startswith("planted") for token in tokens)


def test_both_ways_are_offered_and_neither_begins_by_itself(
    gateway: Gateway, provider: OidcProvider, browser: httpx.Client
) -> None:
    page = browser.get("/login", params={"return_to": "/board"})
    assert page.status_code == 200
    assert "Continue with SSO" in page.text
    assert 'href="/api/auth/oidc/login?return_to=%2Fboard"' in page.text
    assert 'name="password"' in page.text
    assert expect(browser.get("/api/auth/status"), 200) == {
        "oidcEnabled": True,
        "localAuthEnabled": True,
        "selfServicePasswordResetEnabled": False,
        "needsSetup": False,
    }


def test_a_person_reads_in_words_that_the_provider_is_down(
    tmp_path: Any, provider: OidcProvider
) -> None:
    nowhere = {"SERVICE_OIDC_ISSUER": provider.issuer, "SERVICE_OIDC_CLIENT_ID": "x"}
    with start_gateway(tmp_path, INITIAL_PASSWORD=PASSWORD, **nowhere) as gateway:
        provider.is_down = True
        answer = gateway.client().get(LOGIN, headers={"accept": "text/html,*/*;q=0.8"})
        assert (answer.status_code, answer.headers["cache-control"]) == (503, "no-store")
        assert "Single sign-on does not work now" in answer.text
        answer = gateway.client().get(LOGIN)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "upstream_overloaded")


def test_a_provider_that_is_down_is_503_and_one_alone_leaves_no_password(
    gateways: Callable[..., Gateway], provider: OidcProvider
) -> None:
    gateway = gateways(
        INITIAL_PASSWORD=PASSWORD,
        SERVICE_OIDC_ISSUER=provider.issuer,
        SERVICE_OIDC_CLIENT_ID=CLIENT_ID,
        SERVICE_OIDC_CLIENT_SECRET=CLIENT_SECRET,
        SERVICE_OIDC_LOCAL_AUTH_DISABLED="true",
    )
    browser = gateway.client()
    provider.is_down = True
    assert browser.get(LOGIN).status_code == 503
    provider.is_down = False
    provider.discovery = {"issuer": "https://another.example"}
    assert browser.get(LOGIN).status_code == 503
    provider.discovery = {"token_endpoint": "ftp://127.0.0.1/token"}
    assert browser.get(LOGIN).status_code == 503
    provider.discovery = {}
    page = browser.get("/login").text
    assert "Continue with SSO" in page
    assert 'name="password"' not in page
    expect(browser.post("/api/auth/login", json={"password": PASSWORD}), 404)
    assert sign_in(browser) == "/login"


def test_without_a_provider_there_is_no_single_sign_on(owned_gateway: Gateway) -> None:
    anybody = owned_gateway.client()
    expect(anybody.get(LOGIN), 404)
    expect(anybody.get("/api/auth/oidc/callback"), 404)
    assert "SSO" not in anybody.get("/login").text


def test_keys_that_changed_are_asked_for_again(
    gateways: Callable[..., Gateway], provider: OidcProvider
) -> None:
    gateway = gateways(
        INITIAL_PASSWORD=PASSWORD,
        SERVICE_OIDC_ISSUER=provider.issuer,
        SERVICE_OIDC_CLIENT_ID=CLIENT_ID,
        SERVICE_OIDC_CLIENT_SECRET=CLIENT_SECRET,
    )
    assert sign_in(gateway.client()) == "/login"
    provider.key = OidcProvider.new_key()
    assert sign_in(gateway.client()) == "/login"
    # A stranger's signatures do not make the gateway ask each time.
    provider.sign = with_a_strange_key
    before = provider.paths.count("/jwks")
    assert [sign_in(gateway.client()) for _ in range(3)] == ["/?oidc_error=token"] * 3
    assert provider.paths.count("/jwks") == before


def test_the_settings_name_the_provider_while_the_gateway_runs(
    tmp_path: Any, provider: OidcProvider
) -> None:
    """Set up, used, moved to another issuer and taken away, without a restart."""
    owner = {"currentPassword": PASSWORD}
    joins = {"SERVICE_OIDC_JOIN_EXISTING": "true"}
    with (
        start_gateway(tmp_path, INITIAL_PASSWORD=PASSWORD, **joins) as gateway,
        OidcProvider() as other,
    ):
        gateway.canaries.append(CLIENT_SECRET)
        browser = gateway.client()
        assert browser.get(LOGIN).status_code == 404
        there = {
            "oidcIssuer": provider.issuer,
            "oidcClientId": CLIENT_ID,
            "oidcClientSecret": CLIENT_SECRET,
        }
        expect(gateway.admin.patch("/api/settings", json=there | owner), 200)
        assert "Continue with SSO" in browser.get("/login").text
        assert sign_in(browser) == "/login"
        me = expect(browser.get("/api/auth/me"), 200)
        assert me["email"] == provider.person["email"]
        # Who is on the way when the issuer changes does not arrive: the code is another issuer's.
        late = gateway.client()
        on_the_way = back(to_provider(late))
        expect(
            gateway.admin.patch("/api/settings", json=there | {"oidcIssuer": other.issuer} | owner),
            200,
        )
        assert late.get(on_the_way).headers["location"] == "/?oidc_error=state_invalid"
        assert not [path for path in other.paths if path == "/token"]
        # The same subject of another issuer is another identity; its address belongs to the same person.
        other.person = dict(provider.person)
        again = gateway.client()
        assert sign_in(again) == "/login"
        assert expect(again.get("/api/auth/me"), 200)["id"] == me["id"]
        expect(gateway.admin.patch("/api/settings", json=dict.fromkeys(there) | owner), 200)
        assert gateway.client().get(LOGIN).status_code == 404
        gateway.assert_keeps_secrets()
