"""Nobody gives themselves more than they have: each lesser credential tries at each route that could, and nothing
changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fairlead import _core
from tests.integration.test_powers import PASSWORD, add_user, bearer, make_token, sign_in
from tests.support.processes import Gateway, expect, start_gateway

MEMBER = {"email": "member@example.org", "password": "the member's own words"}
ADMIN = {"email": "admin@example.org", "password": "the admin's own words"}
NARROW = sorted(str(each["scope"]) for each in _core.key_scopes())


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with start_gateway(tmp_path_factory.mktemp("rights"), INITIAL_PASSWORD=PASSWORD) as running:
        yield running
        running.assert_keeps_secrets()


class Standing:
    """What is there, and who tries: a member of a team, an admin of it, keys and access tokens."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, admin = gateway, gateway.admin
        self.member = add_user(gateway, **MEMBER, role="member")
        self.admin = add_user(gateway, **ADMIN, role="admin")
        self.area = expect(admin.post("/api/groups", json={"name": "area"}), 201)
        body = {"name": "team", "parentId": self.area["id"]}
        self.team = expect(admin.post("/api/groups", json=body), 201)
        members = f"/api/groups/{self.team['id']}/members"
        body = {"userId": self.member["id"], "role": "member"}
        expect(admin.post(members, json=body), 200)
        self.key = gateway.create_key(groupId=self.team["id"])
        self.narrow = gateway.create_key(scopes=NARROW)
        limit = {"apiKeyId": self.narrow["id"], "tokenLimit": 5}
        made = admin.post("/api/usage/token-limits", json=limit, timeout=60)
        self.limit = expect(made, 201)
        self.managing = gateway.create_key(scopes=["manage"])
        self.token = make_token(gateway, "write")
        self.admin_token = make_token(gateway, "admin")
        self.who: dict[str, dict[str, str]] = {
            "key": bearer(self.key["key"]),
            "narrow key": bearer(self.narrow["key"]),
            "managing key": bearer(self.managing["key"]),
            "write token": bearer(self.token["token"]),
            "admin token": bearer(self.admin_token["token"]),
            "member": sign_in(gateway, **MEMBER),
        }

    def attempts(self, name: str) -> list[tuple[str, str, Any]]:
        """What this one tries in order to have more."""
        own_key = {"key": self.key, "narrow key": self.narrow, "managing key": self.managing}
        mine = own_key.get(name, self.key)
        user, team = self.member["id"], self.team["id"]
        return [
            *(
                ("POST", "/api/keys", {"name": "n", "scopes": [scope]})
                for scope in ("manage", "admin")
            ),
            ("PATCH", f"/api/keys/{self.managing['id']}", {"scopes": ["admin"]}),
            ("PATCH", f"/api/keys/{self.managing['id']}", {"monthlyUsageLimitUsd": None}),
            ("POST", f"/api/keys/{self.managing['id']}/regenerate", None),
            ("PATCH", f"/api/keys/{mine['id']}", {"scopes": ["manage"]}),
            ("POST", "/api/auth/tokens", {"name": "n", "scope": "admin"}),
            (
                "POST",
                "/api/users",
                {"email": "x@example.org", "name": "x", "role": "admin", "password": "p" * 12},
            ),
            ("PATCH", f"/api/users/{user}", {"role": "admin"}),
            ("PUT", "/api/settings/require-login", {"requireLogin": False}),
            ("PATCH", "/api/settings", {"requireLogin": False}),
            ("PATCH", "/api/settings", {"oidcIssuer": "https://evil.example"}),
            ("PATCH", "/api/settings", {"corsOrigins": ["https://evil.example"]}),
            ("PATCH", "/api/settings", {"captureBodies": True}),
            ("PUT", "/api/settings/ip-filter", {"enabled": False}),
            ("POST", "/api/settings/mail/test", None),
            ("POST", f"/api/me/groups/{team}/members", {"userId": user, "role": "admin"}),
            (
                "POST",
                f"/api/me/groups/{self.area['id']}/members",
                {"userId": user, "role": "admin"},
            ),
            *(
                ("POST", f"/api/me/groups/{team}/keys", {"name": "n", field: value})
                for field, value in (
                    ("scopes", ["manage"]),
                    ("scopes", ["read:bodies"]),
                    ("groupId", self.area["id"]),
                    ("noLog", True),
                    ("unpricedModels", "allow"),
                )
            ),
        ]


@pytest.fixture(scope="module")
def standing(gateway: Gateway) -> Standing:
    return Standing(gateway)


def ask(standing: Standing, name: str, method: str, path: str, body: Any) -> httpx.Response:
    headers = standing.who[name]
    return standing.gateway.client(headers=headers).request(method, path, json=body)


@pytest.mark.parametrize(
    "name", ["key", "narrow key", "managing key", "write token", "admin token", "member"]
)
def test_nobody_raises_their_own_rights(standing: Standing, name: str) -> None:
    admin = standing.gateway.admin

    def state() -> Any:
        keys = expect(admin.get("/api/keys", params={"limit": 200}), 200)["keys"]
        return [
            sorted((key["id"], tuple(key["scopes"])) for key in keys),
            sorted(
                (each["id"], each["role"]) for each in expect(admin.get("/api/users"), 200)["users"]
            ),
            len(expect(admin.get("/api/auth/tokens"), 200)["tokens"]),
            expect(admin.get(f"/api/groups/{standing.team['id']}/members"), 200),
            expect(admin.get("/api/settings/ip-filter"), 200),
        ]

    before = state()
    for method, path, body in standing.attempts(name):
        answer = ask(standing, name, method, path, body)
        assert answer.status_code in (400, 401, 403, 404), (method, path, body, answer.text)
    assert state() == before


def test_a_key_does_not_lift_its_own_limits(standing: Standing) -> None:
    path, key_id = "/api/usage/token-limits", standing.narrow["id"]
    higher = {"id": standing.limit["id"], "apiKeyId": key_id, "tokenLimit": 10**12}
    refused = ask(standing, "narrow key", "POST", path, higher)
    assert (refused.status_code, refused.json()["error"]["param"]) == (403, "apiKeyId")
    lifted = standing.gateway.client(headers=standing.who["narrow key"]).delete(
        path, params={"id": standing.limit["id"]}
    )
    assert lifted.status_code == 403
    told = expect(standing.gateway.admin.get(path, params={"apiKeyId": key_id}), 200)
    assert [each["tokenLimit"] for each in told["limits"]] == [5]
    # What the scope is for still works.
    other = {"apiKeyId": standing.key["id"], "tokenLimit": 7}
    expect(ask(standing, "narrow key", "POST", path, other), 201)


def test_an_admin_makes_nobody_an_owner(standing: Standing) -> None:
    admin = standing.gateway.client(headers=sign_in(standing.gateway, **ADMIN))
    password = {"currentPassword": ADMIN["password"]}
    own = f"/api/users/{standing.admin['id']}"
    assert admin.patch(own, json={"role": "owner", **password}).status_code == 400
    body = {"email": "o@example.org", "name": "o", "role": "owner", "password": "p" * 12}
    assert admin.post("/api/users", json=body | password).status_code == 400
    (owner,) = [
        each
        for each in expect(standing.gateway.admin.get("/api/users"), 200)["users"]
        if each["role"] == "owner"
    ]
    answer = admin.patch(
        f"/api/users/{owner['id']}", json={"email": "mine@example.org", **password}
    )
    assert answer.status_code == 403


def test_an_admin_replaces_no_account_by_a_file(standing: Standing) -> None:
    """Whoever writes the file decides who is the owner afterwards."""
    admin = standing.gateway.client(headers=sign_in(standing.gateway, **ADMIN), timeout=60)
    octets = {"content-type": "application/octet-stream"}
    state = admin.get("/api/db-backups/export")
    assert state.status_code == 200, state.text
    path = "/api/db-backups/import"
    assert admin.post(path, content=state.content, headers=octets).status_code == 403
    dry = admin.post(path, params={"dryRun": "true"}, content=state.content, headers=octets)
    assert dry.status_code == 200, dry.text
    begun = expect(admin.post("/api/db-backups/uploads", json={"size": len(state.content)}), 201)
    upload = f"/api/db-backups/uploads/{begun['id']}"
    sent = admin.put(upload, params={"offset": 0}, content=state.content, headers=octets)
    assert sent.status_code == 200, sent.text
    for body in ({"dryRun": False}, {}, None):
        assert admin.post(f"{upload}/restore", json=body).status_code == 403
    assert admin.delete(upload).status_code == 200
    owner = standing.gateway.client(
        headers=sign_in(standing.gateway, password=PASSWORD), timeout=60
    )
    assert owner.post(path, content=b"damaged", headers=octets).status_code == 400


DOORS = ("session", "bearer", "x-api-key", "x-goog-api-key", "local token", "query key")


def shown(door: str, secret: str) -> tuple[dict[str, str], dict[str, str]]:
    """Headers and query with a secret at a door."""
    match door:
        case "session":
            return {"Cookie": f"auth_token={secret}"}, {}
        case "bearer":
            return bearer(secret), {}
        case "local token":
            return {"X-Gateway-Cli-Token": secret}, {}
        case "query key":
            return {}, {"key": secret}
        case header:
            return {header: secret}, {}


def test_a_secret_counts_at_its_own_door_only(standing: Standing) -> None:
    """A cookie, key, token, device code or signed value that was made for one purpose opens nothing at another door."""
    gateway = standing.gateway
    endpoint = expect(
        gateway.admin.post(
            "/api/webhooks", json={"url": "https://hooks.example.com/x", "events": ["key.created"]}
        ),
        201,
    )
    device = gateway.client().post("/api/oauth/openai/device-code", json={})
    assert device.status_code == 401
    cookie = standing.who["member"]["Cookie"].partition("=")[2]
    owner = sign_in(gateway, password=PASSWORD)["Cookie"].partition("=")[2]
    secrets = {
        "member's session": (cookie, {"session"}),
        "owner's session": (owner, {"session"}),
        "key": (standing.key["key"], {"bearer", "x-api-key", "x-goog-api-key", "query key"}),
        "managing key": (
            standing.managing["key"],
            {"bearer", "x-api-key", "x-goog-api-key", "query key"},
        ),
        "admin token": (
            standing.admin_token["token"],
            {"bearer", "x-api-key", "x-goog-api-key", "query key"},
        ),
        "local token": (gateway.cli_token, {"local token"}),
        "webhook secret": (endpoint["secret"], set[str]()),
        "webhook id": (endpoint["webhook"]["id"], set[str]()),
        "key's id": (standing.managing["id"], set[str]()),
        "token's id": (standing.admin_token["id"], set[str]()),
    }
    routes = ("/api/keys", "/api/users", "/api/settings", "/api/auth/tokens", "/api/me/groups")
    for name, (secret, doors) in secrets.items():
        for door in DOORS:
            headers, query = shown(door, secret)
            client = gateway.client(headers=headers)
            answers = {path: client.get(path, params=query).status_code for path in routes}
            if door in doors:
                continue
            assert set(answers.values()) <= {401, 403}, (name, door, answers)
