"""Clients known by the address of a document: the whole flow, and every document that must not count."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.identity.oauth.document_fetch import FetchedDocument
from fairlead.identity.oauth.documents import NoClient, check_document, fault_of_id, fresh_s
from fairlead.identity.oauth.people import user_ids
from fairlead.net import egress
from tests.contract.oauth.conftest import ORIGIN
from tests.support.documents import DocumentHost
from tests.support.tool_client import ToolClient

pytestmark = pytest.mark.anyio

RIGHT = {
    "client_name": "Documented tool",
    "redirect_uris": ["https://tool.example/cb", "http://127.0.0.1/callback", "tool://callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentHost]:
    with DocumentHost(tmp_path_factory.mktemp("documents")) as running:
        yield running


@pytest.fixture
def settings(host: DocumentHost, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The host's certificate counts, and its network is open, as an operator may say."""
    trusting = ssl.create_default_context(cafile=str(host.certificate))
    monkeypatch.setattr(egress, "_tls", lambda: trusting)
    host.asked.clear()
    return {"allow_private_fetch": "127.0.0.0/8"}


def client(server, client_id: str) -> ToolClient:
    return ToolClient(server.http, ORIGIN, client_id=client_id)


async def test_nobody_registers_and_the_whole_flow_passes(server, session, host) -> None:
    tool = client(server, host.put("/tool.json", RIGHT))
    page = await tool.page(cookie=session)
    assert page.status_code == 200
    # The name, and whose word it is.
    assert "Documented tool" in page.text
    assert host.origin.removeprefix("https://") in page.text
    tokens = await tool.tokens(session)
    assert await server.counts(tokens["access_token"])
    again = await tool.refresh(tokens["refresh_token"])
    assert again.status_code == 200, again.text
    # One fetch for all of it.
    assert host.asked == ["/tool.json"]
    [grant] = (await server.http.get("/api/auth/grants", headers=as_local())).json()["grants"]
    assert (grant["clientId"], grant["clientName"]) == (tool.client_id, "Documented tool")


def as_local() -> dict[str, str]:
    return {"x-fairlead-principal": '{"kind": "local", "id": null, "scopes": []}'}


async def test_an_approved_client_is_known_after_a_restart(server, session, host) -> None:
    tool = client(server, host.put("/kept.json", RIGHT))
    tokens = await tool.tokens(session)
    server.oauth.ledger._is_loaded = False
    assert (await tool.refresh(tokens["refresh_token"])).status_code == 200
    [user_id] = await server.services.state.read(user_ids)
    [(_, kept)] = await server.oauth.ledger.grants_of(user_id)
    assert kept is not None
    assert kept.id == tool.client_id
    assert kept.approved_at_ms is not None


async def test_the_flag_is_told_and_can_be_off(server, host) -> None:
    path = "/.well-known/oauth-authorization-server"
    told = (await server.http.get(path)).json()
    assert told["client_id_metadata_document_supported"] is True
    server.oauth.documents.is_on = False
    assert "client_id_metadata_document_supported" not in (await server.http.get(path)).json()
    page = await client(server, host.put("/off.json", RIGHT)).page()
    assert (page.status_code, host.asked) == (400, [])


async def test_redirects_are_those_of_the_document(server, session, host) -> None:
    tool = client(server, host.put("/redirects.json", RIGHT))
    for right in (
        "https://tool.example/cb",
        "http://127.0.0.1/callback",
        "http://127.0.0.1:61000/callback",
    ):
        tool.redirect_uri = right
        assert (await tool.page(cookie=session)).status_code == 200, right
        tokens = await tool.tokens(session)
        assert await server.counts(tokens["access_token"])
    for wrong in (
        "https://tool.example/cb/",
        "https://tool.example:8443/cb",
        "http://localhost/callback",
        "tool://callback",
        "https://evil.example/cb",
        "https://tool.example/cb?x=1",
    ):
        tool.redirect_uri = wrong
        page = await tool.page(cookie=session)
        assert (page.status_code, "Redirect URI mismatch" in page.text) == (400, True), wrong
        assert "location" not in page.headers


async def test_a_code_is_not_for_another_document(server, session, host) -> None:
    tool = client(server, host.put("/one.json", RIGHT))
    code = await tool.code(session)
    other = host.put("/two.json", RIGHT)
    assert (await tool.exchange(code, client_id=other)).json()["error"] == "invalid_grant"
    assert (await tool.exchange(code)).status_code == 200


def bent(**change: Any) -> dict[str, Any]:
    return {name: value for name, value in (RIGHT | change).items() if value is not ...}


WRONG = {
    "another client_id": bent(client_id="https://other.example/tool.json"),
    "without one": bent(client_id=None),
    "a secret": bent(client_secret="s"),
    "a secret's end": bent(client_secret_expires_at=0),
    "a secret method": bent(token_endpoint_auth_method="client_secret_post"),
    "a key method": bent(token_endpoint_auth_method="private_key_jwt"),
    "no redirect": bent(redirect_uris=[]),
    "redirects left out": bent(redirect_uris=...),
    "redirects as text": bent(redirect_uris="https://tool.example/cb"),
    "too many redirects": bent(redirect_uris=[f"https://tool.example/{n}" for n in range(21)]),
    "only schemes of programs": bent(redirect_uris=["tool://callback", "javascript:alert(1)"]),
    "another grant": bent(grant_types=["client_credentials"]),
    "another response": bent(response_types=["token"]),
    "a long name": bent(client_name="n" * 129),
    "a name that is none": bent(client_name={"en": "x"}),
    "no JSON": b"<html>",
    "a list": b"[]",
    "nothing": b"",
    "too large": bent(filler="x" * 17_000),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_document_makes_no_client(server, host, name: str) -> None:
    tool = client(server, host.put("/wrong.json", WRONG[name]))
    page = await tool.page()
    assert (page.status_code, "Unknown client" in page.text) == (400, True)
    assert "location" not in page.headers
    # What is wrong is not remembered: the document can be mended.
    host.put("/wrong.json", RIGHT)
    assert (await tool.page()).status_code == 200


async def test_only_a_plain_answer_counts(server, host) -> None:
    for path, more in {
        "/redirected.json": {"status": 302, "location": f"{host.origin}/tool.json"},
        "/gone.json": {"status": 404},
        "/html.json": {"content_type": "text/html"},
        "/teapot.json": {"status": 203},
    }.items():
        host.put("/tool.json", RIGHT)
        server.oauth.documents._window._windows.clear()
        page = await client(server, host.put(path, RIGHT, **more)).page()
        assert page.status_code == 400, path
        assert "/tool.json" not in host.asked
    assert (
        await client(server, host.put("/j", RIGHT, content_type="application/x+json")).page()
    ).status_code == 200


NO_IDS = [
    "http://127.0.0.1/tool.json",
    "https://tool.example",
    "https://tool.example/",
    "https://a@tool.example/t",
    "https://tool.example/t#f",
    "https://tool.example/a/../t",
    "https://tool.example/%2e%2E/t",
    "https://tool.example/./t",
    "https://tool.example/a/..",
    "https:///t",
    "https://tool.example:0/t",
    "https://tool.example:x/t",
    "https://tool.example/ t",
    "https://tool.example\\@evil/t",
    "https://tööl.example/t",
    "https://t.example/" + "t" * 1024,
    "HTTPS://tool.example/t",
]


@pytest.mark.parametrize("client_id", NO_IDS)
async def test_what_is_no_address_of_a_document_is_never_fetched(server, host, client_id) -> None:
    assert fault_of_id(client_id) is not None
    page = await client(server, client_id).page()
    assert (page.status_code, "Unknown client" in page.text) == (400, True)


async def test_no_private_address_is_dialled(server, host, monkeypatch) -> None:
    closed = egress.Egress("")
    monkeypatch.setattr(server.oauth.documents, "_egress", closed)
    port = host.origin.rpartition(":")[2]
    for name in ("127.0.0.1", "localhost", "[::1]", "2130706433", "127.1", "169.254.169.254"):
        page = await client(server, f"https://{name}:{port}/tool.json").page()
        assert page.status_code == 400, name
    assert host.asked == []
    closed.close()


async def test_a_certificate_that_does_not_count_is_no_document(server, host, monkeypatch) -> None:
    monkeypatch.setattr(egress, "_tls", ssl.create_default_context)
    page = await client(server, host.put("/tool.json", RIGHT)).page()
    assert (page.status_code, host.asked) == (400, [])
    assert "certificate" in page.text


async def test_many_who_ask_at_once_wait_for_one_fetch(server, host) -> None:
    tool = client(server, host.put("/shared.json", RIGHT))
    host.hold.clear()
    asking = [asyncio.create_task(tool.page()) for _ in range(20)]
    while not host.asked:
        await asyncio.sleep(0)
    host.hold.set()
    assert {page.status_code for page in await asyncio.gather(*asking)} == {200}
    assert host.asked == ["/shared.json"]


async def test_strangers_cannot_make_it_fetch_without_end(server, host) -> None:
    for number in range(30):
        await client(server, f"{host.origin}/missing-{number}.json").page()
    assert len(host.asked) == 20
    # Registered clients, and documents that are known, go on.
    tool = ToolClient(server.http, ORIGIN)
    assert (await tool.register()).status_code == 201
    assert (await tool.page()).status_code == 200


async def test_what_is_kept_is_bounded_and_read_again(server, host, monkeypatch) -> None:
    documents = server.oauth.documents
    now = 1000.0
    monkeypatch.setattr(documents, "_clock", lambda: now)
    address = host.put("/fresh.json", RIGHT, cache_control="public, max-age=120")
    await documents.find(address, "192.0.2.1")
    now += 119
    await documents.find(address, "192.0.2.1")
    assert len(host.asked) == 1
    now += 2
    host.put("/fresh.json", RIGHT | {"client_name": "Renamed"})
    assert (await documents.find(address, "192.0.2.1")).name == "Renamed"
    monkeypatch.setattr("fairlead.identity.oauth.documents.DOCUMENTS_MAX", 3)
    for number in range(5):
        await documents.find(host.put(f"/{number}", RIGHT), "192.0.2.1")
    assert len(documents._known) == 3
    # What nobody can read now counts no longer.
    host.put("/4", RIGHT, status=500)
    now += 100_000
    with pytest.raises(NoClient):
        await documents.find(f"{host.origin}/4", "192.0.2.9")


def test_freshness_has_bounds() -> None:
    for told, seconds in {
        "": 300,
        "max-age=0": 60,
        "max-age=600": 600,
        "max-age=99999999": 86_400,
        "no-store": 60,
        "no-cache, max-age=600": 60,
        "s-maxage=5": 300,
    }.items():
        assert fresh_s(FetchedDocument(b"", told)) == seconds, told


def test_a_document_may_say_little(tmp_path: Path) -> None:
    address = "https://tool.example/t"
    said = b'{"client_id": "https://tool.example/t", "redirect_uris": ["http://localhost/cb"]}'
    document = check_document(address, said)
    assert (document.name, document.redirect_uris) == ("", ("http://localhost/cb",))
