"""The issuer's two listeners, row by row: clients, tokens, introspection, revocation and every refusal."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.errors import Refusal, StorageUnavailable
from fairlead.identity.issuer import issuer as issuer_module
from fairlead.identity.issuer import token as token_module
from fairlead.identity.issuer.admin import admin_app
from fairlead.identity.issuer.issuer import Issuer, open_issuer
from fairlead.identity.issuer.public import public_app

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
DID = "did:fairlead:me:agent:0f8b1c6e-7a57-4d0c-b7b6-35d2cbd9c7a1"
SECRET = "s3cret-canary-of-thirty-two-bytes-or-so"
SCOPE = "openid offline agent:read agent:write"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass
class Box:
    """A running issuer; `admin` and `public` speak to its listeners. `now_s` moves its clock."""

    issuer: Issuer
    admin: httpx.AsyncClient
    public: httpx.AsyncClient

    async def register(self, **fields: Any) -> dict[str, Any]:
        body = {"client_id": DID, "client_secret": SECRET, "scope": SCOPE, **fields}
        answer = await self.admin.post("/admin/clients", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def token(self, scope: str | None = None, expect: int = 200, **fields: str) -> Any:
        form = {
            "grant_type": "client_credentials",
            "client_id": DID,
            "client_secret": SECRET,
            **fields,
        }
        if scope is not None:
            form["scope"] = scope
        answer = await self.public.post("/oauth2/token", data=form)
        assert answer.status_code == expect, answer.text
        return answer.json()

    async def introspect(self, token: str, **fields: str) -> dict[str, Any]:
        answer = await self.admin.post("/admin/oauth2/introspect", data={"token": token, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()


@asynccontextmanager
async def running(data_dir: Path, key: bytes = KEY, token: str | None = None) -> AsyncIterator[Box]:
    data_dir.mkdir(exist_ok=True)
    async with (
        open_issuer(data_dir, key, "http://127.0.0.1:20131", 3600) as issuer,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(admin_app(issuer, token)),
            base_url="http://127.0.0.1:20130",
        ) as admin,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(public_app(issuer)), base_url="http://127.0.0.1:20131"
        ) as public,
    ):
        yield Box(issuer, admin, public)


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    async with running(tmp_path / "data") as made:
        yield made


# --------------------------------------------------------------------------------------- clients


async def test_a_client_is_made_and_its_secret_shown_once(box: Box) -> None:
    made = await box.register(
        grant_types=["client_credentials"],
        response_types=["token"],
        token_endpoint_auth_method="client_secret_post",
        metadata={"agent": "a"},
        unknown=1,
    )
    assert made["client_id"] == DID
    assert made["client_secret"] == SECRET
    assert made["client_secret_expires_at"] == 0
    assert made["scope"] == SCOPE
    assert made["grant_types"] == ["client_credentials"]
    assert made["metadata"] == {"agent": "a"}
    assert "unknown" not in made
    shown = (await box.admin.get(f"/admin/clients/{DID}")).json()
    assert "client_secret" not in shown
    assert shown == {name: value for name, value in made.items() if name != "client_secret"}


async def test_what_is_left_out_is_filled_in(box: Box) -> None:
    answer = await box.admin.post("/admin/clients", json={})
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", made["client_secret"])
    assert len(made["client_id"]) == 36
    assert made["token_endpoint_auth_method"] == "client_secret_post"


async def test_json_is_read_whatever_the_content_type_says(box: Box) -> None:
    """A client of the field sends JSON as a form, and the id percent-encoded in paths."""
    body = json.dumps({"client_id": DID, "client_secret": SECRET, "scope": SCOPE})
    made = await box.admin.post("/admin/clients", content=body, headers=FORM)
    assert made.status_code == 201
    for path in (DID, DID.replace(":", "%3A"), DID.replace(":", "%253A")):
        assert (await box.admin.get(f"/admin/clients/{path}")).status_code == 200, path


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"client_id": "two words"}, "client_id"),
        ({"client_id": "did:only"}, "client_id"),
        ({"client_id": "did:UPPER:x"}, "client_id"),
        ({"client_id": "did:x:a/b"}, "client_id"),
        ({"client_id": "x" * 256}, "client_id"),
        ({"client_id": 7}, "client_id"),
        ({"client_secret": "short"}, "client_secret"),
        ({"client_secret": "x" * 513}, "client_secret"),
        ({"scope": "a\tb"}, "scope"),
        ({"scope": 'a"b'}, "scope"),
        ({"scope": " ".join(f"s{n}" for n in range(33))}, "scope"),
        ({"grant_types": ["password"]}, "grant_types"),
        ({"grant_types": "client_credentials"}, "grant_types"),
        ({"response_types": ["all"]}, "response_types"),
        ({"token_endpoint_auth_method": "none"}, "token_endpoint_auth_method"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"x": "y" * 5000}}, "metadata"),
        ({"client_credentials_grant_access_token_lifespan": "1s"}, "lifespan"),
        ({"client_credentials_grant_access_token_lifespan": "soon"}, "lifespan"),
    ],
)
async def test_a_wrong_registration_names_the_field(
    box: Box, fields: dict[str, Any], named: str
) -> None:
    answer = await box.admin.post("/admin/clients", json={"scope": SCOPE, **fields})
    told = answer.json()
    assert (answer.status_code, told["error"]) == (400, "invalid_client_metadata")
    assert named in told["error_description"]
    assert told["status_code"] == 400
    assert (await box.admin.get("/admin/clients")).json() == []


async def test_a_body_that_is_no_object_is_400(box: Box) -> None:
    for body in (b"", b"{", b"[]", b"null", b'"x"', b"\xff"):
        answer = await box.admin.post("/admin/clients", content=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body
    large = await box.admin.post("/admin/clients", content=b" " * 70_000)
    assert large.status_code == 413


async def test_an_id_is_registered_once(box: Box) -> None:
    await box.register()
    answers = await asyncio.gather(
        *(
            box.admin.post("/admin/clients", json={"client_id": "race", "scope": "a"})
            for _ in range(20)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 19
    again = await box.admin.post("/admin/clients", json={"client_id": DID})
    assert again.status_code == 409
    assert again.json()["status_code"] == 409


async def test_an_unknown_client_is_404_with_hydras_words(box: Box) -> None:
    for method in ("GET", "DELETE"):
        answer = await box.admin.request(method, "/admin/clients/nobody")
        assert answer.status_code == 404
        assert answer.json()["error"] == "Unable to locate the resource"
    assert (await box.admin.put("/admin/clients/nobody", json={})).status_code == 404


async def test_put_replaces_and_keeps_the_secret(box: Box) -> None:
    await box.register(client_name="before", metadata={"a": 1})
    answer = await box.admin.put(f"/admin/clients/{DID}", json={"scope": "agent:read"})
    shown = answer.json()
    assert answer.status_code == 200
    assert "client_secret" not in shown
    assert (shown["client_name"], shown["metadata"], shown["scope"]) == ("", {}, "agent:read")
    assert (await box.token())["scope"] == "agent:read"
    await box.admin.put(
        f"/admin/clients/{DID}", json={"scope": SCOPE, "client_secret": "another secret of 20"}
    )
    assert (await box.token(expect=401))["error"] == "invalid_client"
    await box.token(client_secret="another secret of 20")
    renamed = await box.admin.put(f"/admin/clients/{DID}", json={"client_id": "other"})
    assert renamed.status_code == 400


async def test_patch_is_a_json_patch(box: Box) -> None:
    await box.register(client_name="before")
    change = [
        {"op": "replace", "path": "/scope", "value": "agent:read"},
        {"op": "remove", "path": "/client_name"},
    ]
    shown = (await box.admin.patch(f"/admin/clients/{DID}", json=change)).json()
    assert (shown["scope"], shown["client_name"]) == ("agent:read", "")
    for wrong in ([], {}, [{"op": "copy", "path": "/scope"}], [{"op": "add", "path": "/nothing"}]):
        answer = await box.admin.patch(f"/admin/clients/{DID}", json=wrong)
        assert answer.status_code == 400, wrong


async def test_a_lifespan_of_its_own(box: Box) -> None:
    await box.register()
    answer = await box.admin.put(
        f"/admin/clients/{DID}/lifespans",
        json={"client_credentials_grant_access_token_lifespan": "1h30m"},
    )
    assert answer.status_code == 200
    assert (await box.token())["expires_in"] == 5400


async def test_the_list_is_paged_with_link(box: Box) -> None:
    for number in range(5):
        await box.register(client_id=f"c{number}")
    found: list[str] = []
    path: str | None = "/admin/clients?page_size=2"
    while path is not None:
        answer = await box.admin.get(path)
        found += [client["client_id"] for client in answer.json()]
        path = answer.links["next"]["url"] if "link" in answer.headers else None
    assert found == [f"c{number}" for number in range(5)]
    for wrong in ("page_size=0", "page_size=1001", "page_size=x", "page_token=%25"):
        assert (await box.admin.get(f"/admin/clients?{wrong}")).status_code == 400, wrong


# ---------------------------------------------------------------------------------------- tokens


async def test_a_token_is_what_its_introspection_says(box: Box) -> None:
    await box.register()
    answer = await box.public.post(
        "/oauth2/token",
        data={
            "grant_type": "client_credentials",
            "client_id": DID,
            "client_secret": SECRET,
            "scope": "agent:read agent:read",
            "unknown": "is ignored",
        },
    )
    told = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert told["token_type"].lower() == "bearer"
    assert told["expires_in"] == 3600
    assert told["scope"] == "agent:read"
    assert told["access_token"].startswith("fla_")
    assert "refresh_token" not in told
    found = await box.introspect(told["access_token"])
    assert found["active"] is True
    assert found["client_id"] == found["sub"] == DID
    assert found["scope"] == "agent:read"
    assert found["token_type"] == "Bearer"
    assert found["exp"] - found["iat"] == 3600
    assert found["nbf"] == found["iat"]
    assert found["iss"] == "http://127.0.0.1:20131"
    assert found["aud"] == []
    assert found["token_use"] == "access_token"


async def test_without_a_scope_it_is_all_that_was_registered(box: Box) -> None:
    await box.register()
    assert (await box.token())["scope"] == SCOPE
    assert (await box.token(scope=""))["scope"] == SCOPE


async def test_every_fault_of_the_token_endpoint(box: Box) -> None:
    await box.register()
    await box.register(client_id="other", grant_types=["authorization_code"])

    async def fault(expect: int = 400, **fields: str) -> str:
        return (await box.token(expect=expect, **fields))["error"]

    assert await fault(401, client_secret="wrong secret of the client") == "invalid_client"
    assert await fault(401, client_id="nobody") == "invalid_client"
    assert await fault(401, client_id="") == "invalid_client"
    assert await fault(scope="admin") == "invalid_scope"
    assert await fault(scope="agent:read\x01") == "invalid_scope"
    assert await fault(client_id="other") == "unauthorized_client"
    assert await fault(grant_type="password") == "unsupported_grant_type"
    assert await fault(grant_type="") == "invalid_request"
    twice = "grant_type=client_credentials&grant_type=client_credentials"
    for body, kind in (
        (twice, FORM),
        ("{}", {"content-type": "application/json"}),
        ("a=%ff", FORM),
    ):
        answer = await box.public.post("/oauth2/token", content=body, headers=kind)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body
    get = await box.public.get("/oauth2/token")
    assert (get.status_code, get.headers["allow"]) == (405, "POST")
    assert (await box.public.post("/admin/clients", json={})).status_code == 404
    for told in ((await box.public.get("/nowhere")), get):
        assert set(told.json()) == {"error", "error_description", "status_code"}


async def test_a_client_shows_its_secret_in_the_way_that_it_registered(box: Box) -> None:
    await box.register()
    await box.register(client_id="basic:id", token_endpoint_auth_method="client_secret_basic")

    def basic(client_id: str, secret: str) -> dict[str, str]:
        pair = f"{client_id.replace(':', '%3A')}:{secret}"
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    form = {"grant_type": "client_credentials"}
    right = await box.public.post("/oauth2/token", data=form, headers=basic("basic:id", SECRET))
    assert right.status_code == 200, right.text
    for headers in (
        basic("basic:id", "wrong"),
        basic(DID, SECRET),
        {"authorization": "Basic ???"},
        {"authorization": "Bearer x"},
    ):
        wrong = await box.public.post("/oauth2/token", data=form, headers=headers)
        assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client"), headers
        assert wrong.headers["www-authenticate"].startswith("Basic")
    both = {**form, "client_id": "basic:id", "client_secret": SECRET}
    twofold = await box.public.post("/oauth2/token", data=both, headers=basic("basic:id", SECRET))
    assert (twofold.status_code, twofold.json()["error"]) == (400, "invalid_request")
    assert (await box.token(client_id="basic:id", expect=401))["error"] == "invalid_client"
    shown = [("authorization", "Bearer x"), *basic("basic:id", SECRET).items()]
    for headers in (shown, shown[::-1]):
        twice = await box.public.post("/oauth2/token", data=form, headers=headers)
        assert (twice.status_code, twice.json()["error"]) == (400, "invalid_request"), headers


async def test_introspection_says_no_more_than_inactive(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    await box.register()
    token = (await box.token(scope="agent:read"))["access_token"]
    for text in ("x", token + "x", token[:-1], "fla_", "ä", "\u0000"):
        assert await box.introspect(text) == {"active": False}, text
    assert (await box.introspect(token, scope="agent:read"))["active"] is True
    assert await box.introspect(token, scope="agent:read agent:write") == {"active": False}
    json_kind = {"content-type": "application/json"}
    for body, kind in (("", FORM), ("token=a&token=b", FORM), ('{"token": "x"}', json_kind)):
        answer = await box.admin.post("/admin/oauth2/introspect", content=body, headers=kind)
        assert answer.status_code == 400, body
    in_query = await box.admin.post(f"/admin/oauth2/introspect?token={token}", headers=FORM)
    assert in_query.status_code == 400
    assert (await box.admin.get("/admin/oauth2/introspect")).status_code == 405
    real = issuer_module.time.time
    monkeypatch.setattr(issuer_module.time, "time", lambda: real() + 3600)
    assert await box.introspect(token) == {"active": False}


async def test_revocation(box: Box) -> None:
    await box.register()
    await box.register(client_id="other")
    token = (await box.token())["access_token"]
    auth = {"client_id": DID, "client_secret": SECRET}

    async def revoke(expect: int, form: dict[str, str], path: str = "/oauth2/revoke") -> Any:
        answer = await box.public.post(path, data=form)
        assert answer.status_code == expect, answer.text
        return answer.json() if answer.content else None

    assert (await revoke(401, {"token": token}))["error"] == "invalid_client"
    assert (await revoke(400, auth))["error"] == "invalid_request"
    in_query = await revoke(400, {**auth, "token": token}, "/oauth2/revoke?x=1")
    assert in_query["error"] == "invalid_request"
    foreign = {"client_id": "other", "client_secret": SECRET, "token": token}
    assert (await revoke(400, foreign))["error"] == "unauthorized_client"
    assert (await box.introspect(token))["active"] is True
    assert await revoke(200, {**auth, "token": "never was"}) is None
    hinted = {**auth, "token": token, "token_type_hint": "refresh_token"}
    assert await revoke(200, hinted) is None
    assert await box.introspect(token) == {"active": False}
    assert await revoke(200, hinted) is None


async def test_the_admin_revokes_one_or_all_of_a_client(box: Box) -> None:
    await box.register()
    tokens = [(await box.token())["access_token"] for _ in range(3)]
    one = await box.admin.post("/admin/oauth2/revoke", data={"token": tokens[0]})
    assert one.status_code == 200
    assert [(await box.introspect(t))["active"] for t in tokens] == [False, True, True]
    every = await box.admin.delete("/admin/oauth2/tokens", params={"client_id": DID})
    assert every.status_code == 204
    assert every.content == b""
    assert [(await box.introspect(t))["active"] for t in tokens] == [False] * 3
    assert (await box.introspect((await box.token())["access_token"]))["active"] is True
    assert (await box.admin.delete("/admin/oauth2/tokens")).status_code == 400


async def test_a_deleted_client_takes_its_tokens_along(box: Box) -> None:
    await box.register()
    token = (await box.token())["access_token"]
    assert (await box.admin.delete(f"/admin/clients/{DID}")).status_code == 204
    assert await box.introspect(token) == {"active": False}
    assert (await box.token(expect=401))["error"] == "invalid_client"
    await box.register()
    assert await box.introspect(token) == {"active": False}


async def test_a_scope_that_is_taken_away_is_gone_from_tokens_too(box: Box) -> None:
    await box.register()
    token = (await box.token())["access_token"]
    await box.admin.put(f"/admin/clients/{DID}", json={"scope": "agent:read"})
    assert (await box.introspect(token))["scope"] == "agent:read"
    assert await box.introspect(token, scope="agent:write") == {"active": False}


# ------------------------------------------------------------------------------------- the edges


async def test_a_page_of_a_browser_does_not_reach_the_admin_listener(box: Box) -> None:
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-origin"},
        {"host": "evil.example:20130"},
        {"host": ""},
    ):
        answer = await box.admin.post("/admin/clients", json={}, headers=headers)
        assert answer.status_code == 403, headers
    assert (await box.admin.get("/admin/clients")).json() == []
    for host in ("localhost:1", "127.0.0.1", "[::1]:20130"):
        assert (await box.admin.get("/admin/clients", headers={"host": host})).status_code == 200


async def test_the_admin_token_is_asked_for_when_it_is_set(tmp_path: Path) -> None:
    async with running(tmp_path / "data", token="the operator's own bearer") as box:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic eDp5"}):
            answer = await box.admin.post(
                "/admin/oauth2/introspect", data={"token": "x"}, headers=headers
            )
            assert answer.status_code == 401, headers
        shown = {"authorization": "Bearer the operator's own bearer"}
        assert (await box.admin.get("/admin/clients", headers=shown)).status_code == 200
        assert (await box.admin.get("/health/ready")).json() == {"status": "ok"}


async def test_health_and_metadata(box: Box) -> None:
    for path in ("/health/alive", "/health/ready", "/admin/health/ready"):
        assert (await box.admin.get(path)).json() == {"status": "ok"}
    assert (await box.public.get("/health/ready")).status_code == 200
    document = (await box.public.get("/.well-known/oauth-authorization-server")).json()
    assert document["issuer"] == "http://127.0.0.1:20131"
    assert document["token_endpoint"] == "http://127.0.0.1:20131/oauth2/token"
    assert document["grant_types_supported"] == ["client_credentials"]
    assert "client_secret_post" in document["token_endpoint_auth_methods_supported"]
    # It is no OpenID provider, and says so.
    assert (await box.public.get("/.well-known/openid-configuration")).status_code == 404


HERE, THERE = "https://gw.example/agents/a", "https://gw.example/agents/b"


async def test_a_token_is_for_whom_its_client_is_registered_or_for_fewer(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    async with running(data_dir) as box:
        await box.register(audience=[HERE, THERE])
        every = (await box.token())["access_token"]
        one = (await box.token(audience=THERE))["access_token"]
        both = (await box.token(audience=f"{THERE} {HERE}"))["access_token"]
        fault = await box.token(audience=f"{HERE} https://other.example", expect=400)
        assert fault["error"] == "invalid_target"
    async with running(data_dir) as box:
        for token, expected in ((every, [HERE, THERE]), (one, [THERE]), (both, [THERE, HERE])):
            assert (await box.introspect(token))["aud"] == expected
        # What an operator takes from the client, its tokens lose, and none comes to be for everybody.
        patch = [{"op": "replace", "path": "/audience", "value": [HERE]}]
        assert (await box.admin.patch(f"/admin/clients/{DID}", json=patch)).status_code == 200
        assert (await box.introspect(every))["aud"] == [HERE]
        assert (await box.introspect(both))["aud"] == [HERE]
        assert await box.introspect(one) == {"active": False}


async def test_guesses_at_a_secret_are_limited_by_client_and_address(box: Box) -> None:
    await box.register()
    await box.register(client_id="other")
    right = {"grant_type": "client_credentials", "client_id": DID, "client_secret": SECRET}
    wrong = right | {"client_secret": "not the secret"}

    async def status(form: dict[str, str], path: str = "/oauth2/token") -> int:
        answer = await box.public.post(path, data=form)
        if answer.status_code == 429:
            assert 1 <= int(answer.headers["retry-after"]) <= 60
            assert answer.json()["error"] == "too_many_requests"
        return answer.status_code

    # Right ones do not count.
    assert [await status(right) for _ in range(12)] == [200] * 12
    assert [await status(wrong) for _ in range(12)] == [401] * 10 + [429] * 2
    assert await status(right) == 429
    assert await status({**wrong, "token": "x"}, "/oauth2/revoke") == 429
    assert await status(right | {"client_id": "other"}) == 200
    # From elsewhere the client is not locked out.
    elsewhere = httpx.ASGITransport(box.public._transport.app, client=("192.0.2.9", 1))
    async with httpx.AsyncClient(transport=elsewhere, base_url="http://127.0.0.1") as public:
        assert (await public.post("/oauth2/token", data=right)).status_code == 200
        # Of one address, whichever client it names.
        for number in range(100):
            form = wrong | {"client_id": f"c{number}"}
            assert (await public.post("/oauth2/token", data=form)).status_code == 401
        assert (await public.post("/oauth2/token", data=right)).status_code == 429


async def test_guesses_through_a_trusted_proxy_count_for_whom_it_saw(box: Box) -> None:
    await box.register()
    form = {"grant_type": "client_credentials", "client_id": DID, "client_secret": "wrong"}
    transport = httpx.ASGITransport(public_app(box.issuer, trusted_proxies=1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as public:

        async def status(seen: str) -> int:
            headers = {"x-forwarded-for": f"203.0.113.1, {seen}"}
            return (await public.post("/oauth2/token", data=form, headers=headers)).status_code

        assert [await status("192.0.2.1") for _ in range(11)] == [401] * 10 + [429]
        assert await status("192.0.2.2") == 401


async def test_everything_survives_a_restart_and_nothing_is_in_clear(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    async with running(data_dir) as box:
        await box.register()
        tokens = [(await box.token())["access_token"] for _ in range(3)]
        await box.admin.post("/admin/oauth2/revoke", data={"token": tokens[0]})
    async with running(data_dir) as box:
        assert [(await box.introspect(t))["active"] for t in tokens] == [False, True, True]
        await box.token()
        shown = (await box.admin.get(f"/admin/clients/{DID}")).json()
        assert shown["scope"] == SCOPE
    for file in data_dir.iterdir():
        text = file.read_bytes()
        for canary in (SECRET, *tokens):
            assert canary.encode() not in text, file.name
    assert (data_dir / "issuer.duckdb").stat().st_mode & 0o777 == 0o600
    assert SECRET not in repr(box.issuer.client(DID))


async def test_another_key_or_another_process_is_a_refusal(tmp_path: Path) -> None:
    async with running(tmp_path / "data"):
        pass
    with pytest.raises(Refusal, match="another key"):
        async with running(tmp_path / "data", key=b"x" * 32):
            pass


# --------------------------------------------------------------------------------------- at once


async def test_fifty_tokens_at_once_share_commits(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    await box.register()
    commits = 0
    write = box.issuer.database.write

    async def counted(work: Any, **options: Any) -> Any:
        nonlocal commits
        commits += 1
        return await write(work, **options)

    monkeypatch.setattr(box.issuer.database, "write", counted)
    told = await asyncio.gather(*(box.token() for _ in range(50)))
    texts = {each["access_token"] for each in told}
    assert len(texts) == 50
    assert commits < 25
    assert all([(await box.introspect(text))["active"] for text in texts])


async def test_whoever_asks_after_a_revocation_was_answered_is_told_so(box: Box) -> None:
    await box.register()
    tokens = [(await box.token())["access_token"] for _ in range(50)]

    async def end(token: str) -> bool:
        await box.admin.post("/admin/oauth2/revoke", data={"token": token})
        return bool((await box.introspect(token))["active"])

    assert await asyncio.gather(*(end(token) for token in tokens)) == [False] * 50


async def test_a_client_deleted_while_tokens_are_stored_has_none_after(box: Box) -> None:
    await box.register()

    async def try_token() -> str | None:
        answer = await box.public.post(
            "/oauth2/token",
            data={"grant_type": "client_credentials", "client_id": DID, "client_secret": SECRET},
        )
        return answer.json().get("access_token")

    tasks = [asyncio.create_task(try_token()) for _ in range(50)]
    await asyncio.sleep(0)
    await box.admin.delete(f"/admin/clients/{DID}")
    texts = [text for text in await asyncio.gather(*tasks) if text is not None]
    assert [(await box.introspect(text))["active"] for text in texts] == [False] * len(texts)


async def test_a_full_table_is_503_and_leaves_others_their_room(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_module, "TOKENS_OF_CLIENT_MAX", 2)
    await box.register()
    await box.register(client_id="other")
    for _ in range(2):
        await box.token()
    assert (await box.token(expect=503))["error"] == "temporarily_unavailable"
    await box.token(client_id="other")


async def test_what_could_not_be_stored_is_503_and_no_token(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    await box.register()
    token = (await box.token())["access_token"]
    real = box.issuer.database.write

    async def broken(work: Any, **options: Any) -> Any:
        raise StorageUnavailable("The database does not answer.")

    monkeypatch.setattr(box.issuer.database, "write", broken)
    assert (await box.token(expect=503))["error"] == "temporarily_unavailable"
    revoked = await box.admin.post("/admin/oauth2/revoke", data={"token": token})
    assert revoked.status_code == 503
    assert await box.introspect(token) == {"active": False}
    assert (await box.admin.delete(f"/admin/clients/{DID}")).status_code == 503
    monkeypatch.setattr(box.issuer.database, "write", real)
    await box.token()


async def test_what_expired_is_forgotten(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    await box.register()
    await box.token()
    table = box.issuer._tokens
    assert len(table) == 1
    live = next(iter(table._tokens.values()))
    assert table.forget_expired(live.expires_at_s - 1) == 0
    assert table.forget_expired(live.expires_at_s + token_module.LOT_S) == 1
    assert len(table) == 0
    assert table._of_client == {}
    assert table._lots == {}
