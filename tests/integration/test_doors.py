"""A value that was made for one purpose is worthless elsewhere: each kind is tried at every door of the others."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pyotp
import pytest

from tests.integration.test_powers import PASSWORD, add_user, bearer, make_token, sign_in
from tests.support.acp_command import install_agent
from tests.support.agents import SCOPE, make_agent, register, token_of
from tests.support.oauth_server import OAuthServer
from tests.support.oidc import CLIENT_ID, OidcProvider
from tests.support.oidc import CLIENT_SECRET as OIDC_SECRET
from tests.support.polling import eventually
from tests.support.process import children_of, free_port
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.tls import NO_AUTHORITIES
from tests.support.tool_client import ToolClient
from tests.support.upstream import Upstream

MEMBER = {"email": "member@example.org", "password": "the member's own words"}
CLIENT = "did:fairlead:test:doors:1"
CLIENT_SECRET = "canary-of-a-client-secret-of-doors"
REFUSED = {400, 401, 403, 404, 410}
ADDRESSES = itertools.count(1)


@dataclass
class House:
    """The gateway, what was given out by it, and whoever is at its doors."""

    gateway: Gateway
    issuer: str
    issuer_admin: str
    provider: OAuthServer
    agent: str = ""
    tool: ToolClient | None = None
    owner: dict[str, str] = field(default_factory=dict)
    upload_id: str = ""
    acp_url: str = ""
    login_issuer: str = ""
    login_cookie: str = ""
    login_state: str = ""
    values: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    """Each kind of value: one of it, and the doors that it is for."""

    def put(self, kind: str, value: str, *doors: str) -> None:
        assert value, kind
        self.values[kind] = (value, frozenset(doors))

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request of an address that no one has come from, so that no window of attempts is shared."""
        number = next(ADDRESSES)
        address = f"198.18.{number // 250}.{number % 250 + 1}"
        headers = {"x-forwarded-for": address} | more.pop("headers", {})
        headers = {name: text for name, text in headers.items() if text}
        client = self.gateway.client()
        try:
            return client.request(method, path, headers=headers, **more)
        finally:
            client.close()


def issuer_is_up(admin_url: str) -> bool:
    try:
        ready = httpx.get(f"{admin_url}/health/ready", trust_env=False, verify=NO_AUTHORITIES)
    except httpx.HTTPError:
        return False
    return ready.status_code == 200


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    port, admin_port, public = free_port(), free_port(), free_port()
    commands = tmp_path_factory.mktemp("commands")
    install_agent(commands, "qwen")
    settings = {
        "ISSUER__ENABLED": "true",
        "ISSUER__PORT": str(port),
        "ISSUER__ADMIN_PORT": str(admin_port),
        "AUTH__ENABLED": "true",
        "SERVICE_TRUST_PROXY": "1",
        "SERVICE_PUBLIC_BASE_URL": f"http://127.0.0.1:{public}",
        "FAIRLEAD_ALLOW_PRIVATE_FETCH": "127.0.0.0/8",
        "REQUIRE_API_KEY": "true",
        "INITIAL_PASSWORD": PASSWORD,
        "SERVICE_OIDC_CLIENT_ID": CLIENT_ID,
        "SERVICE_OIDC_CLIENT_SECRET": OIDC_SECRET,
        "FAIRLEAD_ACP_TOOLS": "qwen",
        "FAIRLEAD_ACP_ALLOW_ROOT": "true",
        "PATH": f"{commands}:{os.environ['PATH']}",
    }
    urls = (f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin_port}")
    with (
        OAuthServer() as provider,
        OidcProvider() as oidc,
        Upstream() as upstream,
        start_gateway(
            tmp_path_factory.mktemp("doors"), **settings, SERVICE_OIDC_ISSUER=oidc.issuer
        ) as gateway,
    ):
        eventually(lambda: issuer_is_up(urls[1]), "the issuer answers", within_s=30)
        found = House(gateway, *urls, provider, login_issuer=oidc.issuer)
        model = gateway.add_lane(upstream).model
        found.agent = str(make_agent(gateway, model)["path"])
        for make in (people, keys, tools, issued, files, providers, sign_on, inner):
            make(found)
        yield found


# ----------------------------------------------------------------------- one value of each kind


def people(house: House) -> None:
    gateway = house.gateway
    add_user(gateway, **MEMBER, role="member")
    house.owner = sign_in(gateway, password=PASSWORD)
    house.put("owner's session", house.owner["Cookie"].partition("=")[2], "cookie")
    member = sign_in(gateway, **MEMBER)
    client = gateway.client(headers=member)
    current = {"currentPassword": MEMBER["password"]}
    enrolled = expect(client.post("/api/auth/2fa/enrol", json=current), 200)
    house.put("second factor's secret", enrolled["secret"])
    totp = pyotp.TOTP(enrolled["secret"])
    confirmed = expect(client.post("/api/auth/2fa/confirm", json={"code": totp.now()}), 200)
    house.put("recovery code", confirmed["recoveryCodes"][0])
    house.put("member's session", member["Cookie"].partition("=")[2], "cookie")
    waiting = expect(gateway.client().post("/api/auth/login", json=MEMBER), 200)
    house.put("sign-in that waits for its code", waiting["tempToken"], "pending sign-in")
    made = expect(
        gateway.client(headers=house.owner).post("/api/me/tokens", json={"name": "t"}), 201
    )
    house.put("static token", made["token"], "mcp")
    house.put(
        "access token",
        make_token(gateway, "admin")["token"],
        "bearer",
        "x-api-key",
        "x-goog-api-key",
    )
    house.put("local token", gateway.cli_token, "local token")


def keys(house: House) -> None:
    gateway = house.gateway
    house.put("key", gateway.create_key(name="of doors")["key"], *KEY_DOORS)
    managing = gateway.create_key(name="manages", scopes=["manage"])
    house.put("managing key", managing["key"], *KEY_DOORS)
    house.put("key's id", managing["id"])
    body = {"url": "https://hooks.example.com/x", "events": ["key.created"]}
    hook = expect(gateway.admin.post("/api/webhooks", json=body), 201)
    house.put("webhook's secret", hook["secret"])
    house.put("webhook's id", hook["webhook"]["id"])
    house.put("session lease's owner", "vlo_" + "o" * 43, "lease")


def tools(house: House) -> None:
    """Codes and tokens of the authorization server for tools, and of its devices."""
    gateway = house.gateway
    session = house.owner["Cookie"].partition("=")[2]

    async def grant() -> tuple[ToolClient, dict[str, Any], str]:
        http = httpx.AsyncClient(base_url=gateway.url, trust_env=False, timeout=20)
        async with http:
            metadata = await http.get("/.well-known/oauth-authorization-server")
            tool = ToolClient(http, metadata.json()["issuer"])
            assert (await tool.register()).status_code == 201
            return tool, await tool.tokens(session), await tool.code(session)

    house.tool, pair, code = asyncio.run(grant())
    house.put("tool's access token", pair["access_token"], "mcp/rpc")
    house.put("tool's refresh token", pair["refresh_token"], "refresh_token")
    house.put("authorization code", code, "code")
    house.put("tool's client id", house.tool.client_id)
    begun = expect(
        house.ask("POST", "/oauth/device_authorization", data={"client_id": "fairlead-cli"}), 200
    )
    house.put("device code", begun["device_code"], "device_code")
    house.put("code that a person types", begun["user_code"], "user_code")


def issued(house: House) -> None:
    register(house.issuer_admin, CLIENT, CLIENT_SECRET)
    house.put(
        "issuer's token",
        token_of(house.issuer, CLIENT, CLIENT_SECRET, SCOPE),
        "agent",
        "introspection",
    )
    house.put("issuer's client secret", CLIENT_SECRET, "client secret")


def files(house: House) -> None:
    """The address of an upload in pieces, ids of what is stored, and cursors."""
    key = house.values["key"][0]
    caller = house.gateway.client(headers=bearer(key))
    start = {
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-length": "4",
        "x-goog-upload-header-content-type": "text/plain",
    }
    begun = caller.post("/upload/v1beta/files", json={"file": {}}, headers=start)
    expect(begun, 200)
    session = urlsplit(begun.headers["x-goog-upload-url"]).path.rpartition("/")[2]
    house.upload_id, _, token = session.partition(".")
    house.put("upload session", session, "upload session")
    house.put("upload session's secret", token, "upload session's secret")
    for name in ("one.txt", "two.txt"):
        form = {"file": (name, b"text", "text/plain")}
        made = caller.post("/v1/files", data={"purpose": "user_data"}, files=form)
        house.put(f"file {name}", expect(made, 200)["id"], "file", "file cursor")
    upload = {"purpose": "user_data", "filename": "x", "bytes": 4, "mime_type": "text/plain"}
    house.put(
        "upload in parts",
        expect(caller.post("/v1/uploads", json=upload), 200)["id"],
        "upload in parts",
    )
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    page = expect(house.ask("GET", "/v1/files?limit=1", headers=headers), 200)
    if page.get("next_page"):
        house.put("cursor of files", page["next_page"], "file page")
    client = house.gateway.client(
        headers=bearer(house.values["static token"][0]) | {"x-fairlead": "1"}
    )
    for name in ("a", "b"):
        called = tool_call(client, "/mcp", "projects_create", {"name": name})
        assert called["structuredContent"]["project"]["id"], called
    listed = tool_call(client, "/mcp", "projects_list", {"limit": 1})["structuredContent"]
    house.put("cursor of a board", listed["nextCursor"], "board cursor")


def providers(house: House) -> None:
    """The state of a sign-in at a provider, in a browser and on a device."""
    admin = house.gateway.admin
    expect(admin.put("/api/oauth/openai/settings", json=house.provider.section()), 200)
    begun = expect(admin.post("/api/oauth/openai/authorize", json={}), 200)
    (state,) = parse_qs(urlsplit(begun["authorizationUrl"]).query)["state"]
    house.put("provider sign-in", state, "provider sign-in")
    device = expect(admin.post("/api/oauth/openai/device-code", json={}), 200)
    house.put("provider's device sign-in", device["state"], "provider's device sign-in")


def sign_on(house: House) -> None:
    """The state of a sign-in at the identity provider: a cookie of the browser, and what the provider sends back."""
    begun = house.ask("GET", "/api/auth/oidc/login")
    (house.login_state,) = parse_qs(urlsplit(begun.headers["location"]).query)["state"]
    house.login_cookie = begun.cookies["oidc_errand"]
    house.put("cookie of a single sign-on", house.login_cookie, "single sign-on's cookie")
    house.put("state of a single sign-on", house.login_state, "single sign-on's state")


def inner(house: House) -> None:
    """What the gateway's own processes show each other."""
    documents = {
        name: json.loads(text)
        for pid in children_of(house.gateway.popen.pid)
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        for name, _, text in (variable.partition(b"="),)
        if name.startswith(b"FAIRLEAD_") and text.startswith(b"{")
    }
    (link_token,) = {each["link_token"] for each in documents.values() if "link_token" in each}
    house.put("token of the planes", link_token, "control")
    (control,) = (each for each in documents.values() if each.get("acp_url"))
    house.acp_url = control["acp_url"]
    house.put("token of coding tools", control["acp_token"], "coding tools")


# ------------------------------------------------------------------------------------ the doors


def tool_call(client: httpx.Client, path: str, tool: str, arguments: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body["params"] = {"name": tool, "arguments": arguments}
    accept = {"accept": "application/json, text/event-stream"}
    answer = client.post(path, json=body, headers=accept)
    document = (
        answer.json()
        if answer.headers["content-type"].startswith("application/json")
        else json.loads(answer.text.partition("data: ")[2].partition("\n")[0])
    )
    return document.get("result", document)


RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"accept": "application/json, text/event-stream"}


def credential(
    house: House, headers: dict[str, str], query: dict[str, str]
) -> list[httpx.Response]:
    """The routes that a caller's credential opens: a model's, a key's own, and management."""
    chat = {"model": "x/y", "messages": [{"role": "user", "content": "hi"}]}
    return [
        house.ask("GET", "/v1/models", headers=headers, params=query),
        house.ask("GET", "/v1beta/models", headers=headers, params=query),
        house.ask("POST", "/v1/chat/completions", headers=headers, params=query, json=chat),
        house.ask("GET", "/api/keys", headers=headers, params=query),
        house.ask("GET", "/api/settings", headers=headers, params=query),
        house.ask("GET", "/api/me/groups", headers=headers, params=query),
        house.ask("GET", "/api/auth/sessions", headers=headers, params=query),
    ]


def token_endpoint(house: House, fields: dict[str, str]) -> list[httpx.Response]:
    assert house.tool is not None
    usual = {"client_id": house.tool.client_id, "resource": house.tool.resource}
    return [house.ask("POST", "/oauth/token", data=usual | fields)]


def of_code(house: House, value: str) -> list[httpx.Response]:
    assert house.tool is not None
    fields = {
        "grant_type": "authorization_code",
        "code": value,
        "redirect_uri": house.tool.redirect_uri,
    }
    return token_endpoint(house, fields | {"code_verifier": house.tool.verifier})


def of_device(house: House, value: str) -> list[httpx.Response]:
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    fields = {"grant_type": grant, "device_code": value, "client_id": "fairlead-cli"}
    return [house.ask("POST", "/oauth/token", data=fields)]


def typed(house: House, value: str) -> list[httpx.Response]:
    """The page that asks a signed-in person about a device."""
    return [house.ask("GET", "/oauth/device", params={"user_code": value}, headers=house.owner)]


def of_tool(house: House, path: str, value: str) -> list[httpx.Response]:
    headers = bearer(value) | ACCEPT | {"x-fairlead": "1"}
    return [house.ask("POST", path, json=RPC, headers=headers)]


def of_agent(house: House, value: str) -> list[httpx.Response]:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t"}}
    return [house.ask("POST", house.agent, json=body, headers=bearer(value))]


def introspected(house: House, value: str) -> list[httpx.Response]:
    url = f"{house.issuer_admin}/admin/oauth2/introspect"
    answer = httpx.post(url, data={"token": value}, trust_env=False, verify=NO_AUTHORITIES)
    assert answer.status_code == 200, answer.text
    return [httpx.Response(200 if answer.json()["active"] else 401, request=answer.request)]


def of_issuer(house: House, value: str) -> list[httpx.Response]:
    # A client of its own for each guess: ten wrong secrets of one are answered 429.
    client_id = CLIENT if value == CLIENT_SECRET else f"{CLIENT[:-1]}{next(ADDRESSES)}"
    if client_id != CLIENT:
        register(house.issuer_admin, client_id, f"another secret of {client_id}")
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": value}
    url = f"{house.issuer}/oauth2/token"
    return [httpx.post(url, data=form, trust_env=False, verify=NO_AUTHORITIES)]


def of_control(house: House, value: str) -> list[httpx.Response]:
    """Control's socket, for who is on the machine; and the same header on the public port."""
    transport = httpx.HTTPTransport(uds=str(house.gateway.data_dir / "run" / "control.sock"))
    with httpx.Client(transport=transport, base_url="http://control", timeout=20) as client:
        inside = client.get("/api/keys", headers={"x-fairlead-link": value})
    return [inside]


def of_coding_tools(house: House, value: str) -> list[httpx.Response]:
    """The process of coding tools, for who is on the machine. An unknown tool is a question that it answered."""
    url = f"{house.acp_url}/chat/completions"
    body = {"model": "none", "messages": [{"role": "user", "content": "hi"}]}
    answer = httpx.post(url, json=body, headers=bearer(value), trust_env=False, timeout=20)
    is_answered = answer.status_code == 404
    return [httpx.Response(200 if is_answered else answer.status_code, request=answer.request)]


def of_sign_on(house: House, cookie: str, state: str) -> list[httpx.Response]:
    """The address to which the identity provider sends a browser back. The code is never one of the provider's."""
    answer = house.ask(
        "GET",
        "/api/auth/oidc/callback",
        params={"code": "x", "state": state, "iss": house.login_issuer},
        headers={"Cookie": f"oidc_errand={cookie}"},
    )
    assert answer.status_code == 302, answer.text
    is_refused = "oidc_error=state_invalid" in answer.headers["location"]
    return [httpx.Response(401 if is_refused else 200, request=answer.request)]


def by_key(house: House, method: str, path: str, **more: Any) -> list[httpx.Response]:
    return [house.ask(method, path, headers=bearer(house.values["key"][0]), **more)]


def by_owner(house: House, method: str, path: str, **more: Any) -> list[httpx.Response]:
    headers = {"X-Gateway-Cli-Token": house.gateway.cli_token}
    return [house.gateway.client(headers=headers).request(method, path, **more)]


def of_board(house: House, value: str) -> list[httpx.Response]:
    client = house.gateway.client(
        headers=bearer(house.values["static token"][0]) | {"x-fairlead": "1"}
    )
    result = tool_call(client, "/mcp", "projects_list", {"limit": 1, "cursor": value})
    is_refused = bool(result.get("isError") or "error" in result)
    return [httpx.Response(400 if is_refused else 200, text=json.dumps(result))]


def of_files(house: House, value: str) -> list[httpx.Response]:
    headers = {"x-api-key": house.values["key"][0], "anthropic-version": "2023-06-01"}
    return [
        house.ask("GET", "/v1/files", params={"page": value}, headers=headers),
    ]


NO_PROXY = {"x-forwarded-for": ""}
"""The local token counts on the machine alone, without a proxy between."""
KEY_DOORS = ("bearer", "x-api-key", "x-goog-api-key", "query key")
Door = Callable[[House, str], list[httpx.Response]]
DOORS: dict[str, Door] = {
    "bearer": lambda house, value: credential(house, bearer(value), {}),
    "x-api-key": lambda house, value: credential(house, {"x-api-key": value}, {}),
    "x-goog-api-key": lambda house, value: credential(house, {"x-goog-api-key": value}, {}),
    "query key": lambda house, value: credential(house, {}, {"key": value}),
    "cookie": lambda house, value: credential(house, {"Cookie": f"auth_token={value}"}, {}),
    "local token": lambda house, value: credential(
        house, {"X-Gateway-Cli-Token": value} | NO_PROXY, {}
    ),
    "pending sign-in": lambda house, value: [
        house.ask("POST", "/api/auth/login/2fa", json={"tempToken": value, "code": "000000"})
    ],
    "code": of_code,
    "refresh_token": lambda house, value: token_endpoint(
        house, {"grant_type": "refresh_token", "refresh_token": value}
    ),
    "device_code": of_device,
    "user_code": typed,
    "mcp": lambda house, value: of_tool(house, "/mcp", value),
    "mcp/rpc": lambda house, value: of_tool(house, "/mcp/rpc", value),
    "agent": of_agent,
    "introspection": introspected,
    "client secret": of_issuer,
    "control": of_control,
    "coding tools": of_coding_tools,
    "single sign-on's cookie": lambda house, value: of_sign_on(house, value, house.login_state),
    "single sign-on's state": lambda house, value: of_sign_on(house, house.login_cookie, value),
    "upload session": lambda house, value: [
        house.ask(
            "POST",
            f"/upload/v1beta/sessions/{value}",
            headers={"x-goog-upload-command": "query"},
        )
    ],
    "upload session's secret": lambda house, value: [
        house.ask(
            "POST",
            f"/upload/v1beta/sessions/{house.upload_id}.{value}",
            headers={"x-goog-upload-command": "query"},
        )
    ],
    "upload in parts": lambda house, value: by_key(
        house, "POST", f"/v1/uploads/{value}/complete", json={"part_ids": ["part_none"]}
    ),
    "file": lambda house, value: by_key(house, "GET", f"/v1/files/{value}"),
    "file cursor": lambda house, value: by_key(house, "GET", "/v1/files", params={"after": value}),
    "file page": of_files,
    "board cursor": of_board,
    "provider sign-in": lambda house, value: [
        *by_owner(house, "POST", "/api/oauth/openai/exchange", json={"code": "x", "state": value}),
        house.ask("GET", "/api/oauth/openai/callback", params={"code": "x", "state": value}),
    ],
    "provider's device sign-in": lambda house, value: by_owner(
        house, "POST", "/api/oauth/openai/poll", json={"state": value}
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_value_opens_its_own_door_only(house: House, door: str) -> None:
    opened: dict[str, list[int]] = {}
    for kind, (value, own) in house.values.items():
        if door in own:
            continue
        answers = [answer.status_code for answer in DOORS[door](house, value)]
        if not set(answers) <= REFUSED:
            opened[kind] = answers
    assert not opened, f"{door} is open to {opened}"


def told(answers: list[httpx.Response]) -> list[Any]:
    """What answers say, without what differs from one to the next."""
    said = []
    for answer in answers:
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        body = answer.json() if is_json else len(answer.text)
        if isinstance(body, dict):
            body = {name: value for name, value in body.items() if name != "requestId"}
        said.append((answer.status_code, body))
    return said


def test_each_value_opens_its_own_door(house: House) -> None:
    """Without this, a door that is closed to everything would pass the test above."""
    doors = {door for _, own in house.values.values() for door in own}
    assert doors == {*DOORS, "lease"}
    closed = []
    for kind, (value, own) in house.values.items():
        # A made-up value of the same form.
        half = len(value) // 2
        made_up = value[:half] + "".join("b" if each == "a" else "a" for each in value[half:])
        for door in own & set(DOORS):
            expected = told(DOORS[door](house, made_up))
            if told(DOORS[door](house, value)) == expected:
                closed.append((kind, door))
    assert not closed
