"""Every credential on every route: one table, held against the whole route table of a running gateway.

What gets past the gate is told by a body that no handler will act on, so nothing is changed by asking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from fairlead import _core
from tests.support.processes import Gateway, expect, start_gateway

PASSWORD = "the owner's own words"
MEMBER = {"email": "member@example.org", "password": "the member's own words"}
TIERS = ("public", "inference", "account", "management", "admin", "session", "key")

# They ask for more than a tier, and have tests of their own.
ASK_FOR_MORE = ("/api/usage/om-usage", "/v1/me/status", "/api/usage/logs/{id}/body")

# At each tier of TIERS: `y` passes, `n` is 401, `-` is 403; reading, then changing.
POWERS: dict[str, tuple[str, str]] = {
    "nobody": ("ynnnnnn", "ynnnnnn"),
    "local token": ("yyyyyyn", "yyyyyyn"),
    "local token through a proxy": ("nnnnnnn", "nnnnnnn"),
    "wrong local token": ("nnnnnnn", "nnnnnnn"),
    "owner's session": ("yyyyyyn", "yyyyyyn"),
    "admin's session": ("yyyyyyn", "yyyyyyn"),
    "member's session": ("yny---n", "yny---n"),
    "owner's session from another site": ("yyyyyyn", "------n"),
    "ended session": ("ynnnnnn", "ynnnnnn"),
    "key": ("yy----y", "yy----y"),
    "key with manage": ("yy-yy-y", "yy-yy-y"),
    "switched off key": ("------n", "------n"),
    "banned key with manage": ("------n", "------n"),
    "expired key": ("------n", "------n"),
    "revoked key": ("nnnnnnn", "nnnnnnn"),
    "mistyped key": ("nnnnnnn", "nnnnnnn"),
    "read token": ("y--y--n", "y-----n"),
    "write token": ("y--y--n", "y--y--n"),
    "admin token": ("y--yy-n", "y--yy-n"),
    "revoked token": ("nnnnnnn", "nnnnnnn"),
    "token of a removed user": ("nnnnnnn", "nnnnnnn"),
    "mistyped token": ("nnnnnnn", "nnnnnnn"),
    "static token of another kind": ("nnnnnnn", "nnnnnnn"),
    "key and token at once": ("nnnnnnn", "nnnnnnn"),
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with start_gateway(tmp_path_factory.mktemp("powers"), INITIAL_PASSWORD=PASSWORD) as running:
        yield running
        running.assert_keeps_secrets()


def sign_in(gateway: Gateway, **body: str) -> dict[str, str]:
    """The headers of a page of ours after signing in."""
    answer = gateway.client().post("/api/auth/login", json=body)
    expect(answer, 200)
    token = answer.cookies["auth_token"]
    gateway.canaries.append(token)
    return {"Cookie": f"auth_token={token}", "Origin": gateway.url}


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def make_token(gateway: Gateway, scope: str, headers: dict[str, str] | None = None) -> Any:
    client = gateway.client(headers=headers) if headers else gateway.admin
    made = expect(client.post("/api/auth/tokens", json={"name": scope, "scope": scope}), 201)
    gateway.canaries.append(made["token"])
    return made


def add_user(gateway: Gateway, email: str, password: str, role: str) -> Any:
    body = {"email": email, "name": role, "role": role, "password": password}
    body["currentPassword"] = PASSWORD
    return expect(gateway.admin.post("/api/users", json=body), 201)


@pytest.fixture(scope="module")
def credentials(gateway: Gateway) -> dict[str, dict[str, str]]:
    admin = gateway.admin
    add_user(gateway, **MEMBER, role="member")
    add_user(gateway, "admin@example.org", MEMBER["password"], "admin")
    leaver = add_user(gateway, "leaver@example.org", MEMBER["password"], "admin")
    owner = sign_in(gateway, password=PASSWORD)

    ended = sign_in(gateway, **MEMBER)
    expect(gateway.client(headers=ended).post("/api/auth/logout"), 200)
    of_leaver = sign_in(gateway, email="leaver@example.org", password=MEMBER["password"])
    lost = make_token(gateway, "admin", of_leaver)["token"]
    expect(admin.delete(f"/api/users/{leaver['id']}"), 200)
    revoked_token = make_token(gateway, "admin")
    expect(admin.delete(f"/api/auth/tokens/{revoked_token['id']}"), 200)
    revoked_key = gateway.create_key(scopes=["manage"])
    expect(admin.delete(f"/api/keys/{revoked_key['id']}"), 200)

    key = gateway.create_key()["key"]
    off, banned, expired = (gateway.create_key(scopes=["manage"]) for _ in range(3))
    for made, change in (
        (off, {"isActive": False}),
        (banned, {"isBanned": True}),
        (expired, {"expiresAt": "2020-01-01T00:00:00Z"}),
    ):
        expect(admin.patch(f"/api/keys/{made['id']}", json=change), 200)
    local = {"X-Gateway-Cli-Token": gateway.cli_token}
    reader = make_token(gateway, "read")["token"]
    return {
        "nobody": {},
        "local token": local,
        "local token through a proxy": local | {"X-Forwarded-For": "127.0.0.1"},
        "wrong local token": {"X-Gateway-Cli-Token": "fl-cli-wrong"},
        "owner's session": owner,
        "admin's session": sign_in(gateway, email="Admin@Example.org", password=MEMBER["password"]),
        "member's session": sign_in(gateway, **MEMBER),
        "owner's session from another site": owner | {"Origin": "https://evil.example"},
        "ended session": ended,
        "key": bearer(key),
        "key with manage": bearer(gateway.create_key(scopes=["manage"])["key"]),
        "switched off key": bearer(off["key"]),
        "banned key with manage": bearer(banned["key"]),
        "expired key": bearer(expired["key"]),
        "revoked key": bearer(revoked_key["key"]),
        "mistyped key": bearer(key[:-1] + ("a" if key[-1] != "a" else "b")),
        "read token": bearer(reader),
        "write token": bearer(make_token(gateway, "write")["token"]),
        "admin token": bearer(make_token(gateway, "admin")["token"]),
        "revoked token": bearer(revoked_token["token"]),
        "token of a removed user": bearer(lost),
        "mistyped token": bearer(reader[:-1]),
        "static token of another kind": bearer("flb_" + "x" * 43),
        "key and token at once": bearer(key) | {"X-Api-Key": reader},
    }


def knock(client: httpx.Client, method: str, path: str, headers: dict[str, str]) -> str:
    """`y`, `n` or `-`, as in POWERS."""
    path = re.sub(r"\{\w+\}", "no-such-id", re.sub(r"\{\*\w+\}", "no/such", path))
    if method == "GET":
        answer = client.get(path, headers=headers)
    else:
        sent = headers | {"Content-Type": "application/json"}
        body = b"{"
        if method == "DELETE":
            # A small body is forgotten, whatever it is: one that is too large keeps it from its work. It may be
            # answered before it is read, and the connection ends with that.
            sent, body = sent | {"Connection": "close"}, b"{" * 100_000
        answer = client.request(method, path, headers=sent, content=body)
        # 415: a route for files takes no JSON from any caller
        assert answer.status_code in (400, 401, 403, 413, 415), answer.text
    assert answer.status_code < 500, answer.text
    return {401: "n", 403: "-"}.get(answer.status_code, "y")


SOCKETS = ("/v1/ws", "/v1/realtime")
Routes = list[dict[str, Any]]
EVERYWHERE = ("nobody", "member's session", "key", "read token")
"""Credentials that are tried on every route even in the short form: those that most often are given too much."""


def sample(routes: Routes, who: str) -> Routes:
    """A quarter of the routes, another one for each credential: together they are tried everywhere six times."""
    turn = list(POWERS).index(who)
    return [route for at, route in enumerate(routes) if (at + turn) % 4 == 0]


@pytest.mark.parametrize("who", POWERS)
def test_every_credential(
    gateway: Gateway, credentials: dict[str, dict[str, str]], who: str
) -> None:
    """The short form: every credential at a sample of the routes, some at all of them."""
    routes = _core.routes()
    assert_powers(gateway, credentials, who, routes if who in EVERYWHERE else sample(routes, who))


@pytest.mark.slow
@pytest.mark.parametrize("who", [each for each in POWERS if each not in EVERYWHERE])
def test_every_credential_on_every_route(
    gateway: Gateway, credentials: dict[str, dict[str, str]], who: str
) -> None:
    assert_powers(gateway, credentials, who, _core.routes())


def assert_powers(
    gateway: Gateway, credentials: dict[str, dict[str, str]], who: str, routes: Routes
) -> None:
    reading, changing = POWERS[who]
    client = gateway.client()
    wrong = []
    for route in routes:
        method, path, tier = route["method"], route["path"], route["tier"]
        if path in ("/healthz", "/readyz"):  # answered before anybody is looked at
            continue
        if tier == "delegated":  # the routes behind it have their own tests
            continue
        if path in ASK_FOR_MORE:
            continue
        if path in SOCKETS and "another site" in who:
            continue  # what a page may open anywhere without being asked
        expected = (reading if method == "GET" else changing)[TIERS.index(tier)]
        found = knock(client, method, path, credentials[who])
        if found != expected:
            wrong.append(f"{method} {path} ({tier}): {found}, not {expected}")
    assert not wrong, f"{who}:\n  " + "\n  ".join(wrong)


def test_the_table_is_whole(credentials: dict[str, dict[str, str]]) -> None:
    assert set(credentials) == set(POWERS)
    assert {route["tier"] for route in _core.routes()} == {*TIERS, "delegated"}


SECURITY = [
    ("PATCH", "/api/settings", {"requireLogin": True}),
    ("PUT", "/api/settings", {"requireLogin": True}),
    ("PATCH", "/api/settings", {"bruteForceProtection": True}),
    ("PATCH", "/api/settings", {"newPassword": "words that never come to be"}),
    ("PUT", "/api/settings/require-login", {"requireLogin": True}),
]
# Names of the family that this version does not have are refused to programs all the same.
ABSENT = [{"oidcIssuer": "https://x.example"}, {"oidcAnything": 1}, {"corsOrigins": ["*"]}]


@pytest.mark.parametrize(("method", "path", "body"), SECURITY)
def test_security_settings_are_for_operators_who_know_their_password(
    gateway: Gateway, credentials: dict[str, dict[str, str]], method: str, path: str, body: Any
) -> None:
    right = body | {"currentPassword": PASSWORD}
    client = gateway.client()
    for who, status in {
        "nobody": 401,
        "key": 403,
        "key with manage": 403,
        "read token": 403,
        "write token": 403,
        "admin token": 403,
        "member's session": 403,
        "owner's session from another site": 403,
    }.items():
        expect(client.request(method, path, json=right, headers=credentials[who]), status)
    for who in ("owner's session", "local token"):
        missing = client.request(method, path, json=body, headers=credentials[who])
        assert expect(missing, 400)["error"]["param"] == "currentPassword"
    if "newPassword" not in body:
        for who in ("owner's session", "local token"):
            expect(client.request(method, path, json=right, headers=credentials[who]), 200)


@pytest.mark.parametrize("body", ABSENT)
def test_programs_are_refused_the_whole_family(
    gateway: Gateway, credentials: dict[str, dict[str, str]], body: Any
) -> None:
    for who, status in {"key with manage": 403, "admin token": 403, "owner's session": 400}.items():
        client = gateway.client(headers=credentials[who])
        for method in ("PATCH", "PUT"):
            expect(client.request(method, "/api/settings", json=body), status)


def test_a_wrong_current_password_changes_nothing(
    gateway: Gateway, credentials: dict[str, dict[str, str]]
) -> None:
    body = {"requireLogin": False, "currentPassword": "a guess"}
    answer = gateway.admin.patch("/api/settings", json=body)
    assert expect(answer, 401)["error"]["param"] == "currentPassword"
    assert expect(gateway.admin.get("/api/settings"), 200)["requireLogin"] is True


def test_ordinary_settings_need_the_scope_admin(
    gateway: Gateway, credentials: dict[str, dict[str, str]]
) -> None:
    body = {"usageRetentionDays": 91}
    for who, status in {"read token": 403, "write token": 403, "admin token": 200}.items():
        client = gateway.client(headers=credentials[who])
        expect(client.patch("/api/settings", json=body), status)
    # A replacement that leaves security settings out leaves them alone.
    client = gateway.client(headers=credentials["admin token"])
    assert expect(client.put("/api/settings", json=body), 200)["requireLogin"] is True


def test_nobody_makes_more_power_than_people_gave(
    gateway: Gateway, credentials: dict[str, dict[str, str]]
) -> None:
    for who in ("key with manage", "write token", "admin token"):
        client = gateway.client(headers=credentials[who])
        expect(client.post("/api/keys", json={"name": "k", "scopes": ["manage"]}), 403)
        expect(client.post("/api/auth/tokens", json={"name": "t", "scope": "read"}), 403)
        made = expect(client.post("/api/keys", json={"name": "k"}), 201)
        gateway.canaries.append(made["key"])


CROSS_SITE = [
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    # What the browser says of itself goes before what a page may have a hand in.
    ({"Sec-Fetch-Site": "cross-site", "Origin": "same"}, False),
    ({"Origin": "same"}, True),
    ({"Origin": "null"}, False),
    ({"Origin": "https://evil.example"}, False),
    ({}, False),
]


@pytest.mark.parametrize(("headers", "counts"), CROSS_SITE)
def test_a_cookie_counts_for_changes_from_our_own_pages_only(
    gateway: Gateway, credentials: dict[str, dict[str, str]], headers: dict[str, str], counts: bool
) -> None:
    sent = {name: gateway.url if value == "same" else value for name, value in headers.items()}
    client = gateway.client()
    cookie = {"Cookie": credentials["owner's session"]["Cookie"]}
    answer = client.patch("/api/settings", json={"usageRetentionDays": 92}, headers=cookie | sent)
    assert answer.status_code == (200 if counts else 403)
    # Reading is harmless, and no other origin can read the answer.
    answer = client.get("/api/settings", headers=cookie | sent)
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    # A form of another site cannot sign anybody in.
    form = client.post("/login", data={"password": ""}, headers=sent)
    assert form.status_code == (400 if counts else 403)


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Host": "rebound.example"},
    {"Host": "rebound.example", "Origin": "http://rebound.example"},
]


def test_without_login_programs_manage_and_foreign_pages_do_not(
    gateways: Callable[..., Gateway],
) -> None:
    gateway = gateways(INITIAL_PASSWORD=PASSWORD)
    off = {"requireLogin": False, "currentPassword": PASSWORD}
    expect(gateway.admin.put("/api/settings/require-login", json=off), 200)
    client = gateway.client()
    expect(client.patch("/api/settings", json={"usageRetentionDays": 9}), 200)
    expect(client.get("/api/keys", headers={"Origin": gateway.url}), 200)
    for headers in FOREIGN:
        for method, path in (("GET", "/api/keys"), ("POST", "/api/providers/none/test")):
            expect(client.request(method, path, headers=headers), 403)
    # Nobody is still no operator.
    for body in (off, {"newPassword": "words of a stranger", "currentPassword": PASSWORD}):
        expect(client.patch("/api/settings", json=body), 401)
    expect(client.post("/api/auth/tokens", json={"name": "t", "scope": "read"}), 401)
    expect(client.get("/api/auth/sessions"), 401)
