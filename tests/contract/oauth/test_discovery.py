"""Discovery and the issuer's ladder: one origin in every document, or none."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from authlib.oauth2.rfc9207 import discovery as rfc9207

from fairlead.identity.oauth.issuer import Issuer

from .conftest import ORIGIN

pytestmark = pytest.mark.anyio

SERVER = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"


async def test_the_protected_resource_names_itself_and_its_server(server) -> None:
    for path in (f"{RESOURCE}/mcp/rpc", RESOURCE):
        answer = await server.http.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "resource": f"{ORIGIN}/mcp/rpc",
            "authorization_servers": [ORIGIN],
        }


async def test_the_server_names_its_endpoints_and_what_they_can(server) -> None:
    answer = await server.http.get(SERVER)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "issuer": ORIGIN,
        "authorization_endpoint": f"{ORIGIN}/oauth/authorize",
        "token_endpoint": f"{ORIGIN}/oauth/token",
        "registration_endpoint": f"{ORIGIN}/oauth/register",
        "device_authorization_endpoint": f"{ORIGIN}/oauth/device_authorization",
        "revocation_endpoint": f"{ORIGIN}/oauth/revoke",
        "response_types_supported": ["code"],
        "grant_types_supported": [
            "authorization_code",
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        "protected_resources": [f"{ORIGIN}/mcp/rpc"],
    }


async def test_another_reader_of_the_standards_agrees(server) -> None:
    """authlib holds the document to RFC 8414 and RFC 9207."""
    headers = {"x-fairlead-scheme": "https", "x-fairlead-host": "gw.example"}
    document = AuthorizationServerMetadata((await server.http.get(SERVER, headers=headers)).json())
    document.validate(metadata_classes=[rfc9207.AuthorizationServerMetadata])
    assert get_well_known_url(document["issuer"]) == SERVER


async def test_other_methods_are_refused(server) -> None:
    for path in (SERVER, RESOURCE):
        assert (await server.http.post(path, json={})).status_code == 405


def forwarded(proto: str | None = "https", host: str | None = "gw.example", **more: str) -> Any:
    found = {"x-forwarded-proto": proto, "x-forwarded-host": host}
    found |= {name.replace("_", "-"): value for name, value in more.items()}
    return [(name, value) for name, value in found.items() if value is not None]


PROXIED: dict[str, Any] = {"service_trust_proxy": True}
CF = '{"scheme":"https"}'
# Settings, headers, and the origin that they come to, or None.
LADDER: list[tuple[dict[str, Any], list[tuple[str, str]], str | None]] = [
    ({"service_public_base_url": "https://gw.example"}, [], "https://gw.example"),
    ({"service_public_base_url": "https://GW.example:8443/"}, [], "https://gw.example:8443"),
    ({"service_public_base_url": "http://localhost:9"}, [], "http://localhost:9"),
    (
        {"service_public_base_url": "https://gw.example", **PROXIED},
        forwarded(host="evil.example"),
        "https://gw.example",
    ),
    (
        {"service_public_base_url": "https://gw.example"},
        [("x-fairlead-host", "evil.example")],
        "https://gw.example",
    ),
    ({}, [("x-fairlead-scheme", "https"), ("x-fairlead-host", "gw.example")], "https://gw.example"),
    ({}, [("x-fairlead-scheme", "https"), ("x-fairlead-host", "gw.example:0")], None),
    ({}, [("x-fairlead-scheme", "https"), ("x-fairlead-host", "a@gw.example")], None),
    (PROXIED, forwarded(), "https://gw.example"),
    (PROXIED, forwarded(host="GW.example:8443"), "https://gw.example:8443"),
    (PROXIED, forwarded(proto=None, cf_visitor=CF), "https://gw.example"),
    (PROXIED, forwarded(proto="http", cf_visitor=CF), None),
    (PROXIED, forwarded(proto=None, cf_visitor='{"scheme":"http"}'), None),
    (PROXIED, forwarded(proto=None, cf_visitor="{"), None),
    (PROXIED, forwarded(proto=None, cf_visitor="[]"), None),
    (PROXIED, [*forwarded(proto=None), ("cf-visitor", CF), ("cf-visitor", CF)], None),
    (PROXIED, forwarded(proto=None), None),
    (PROXIED, forwarded(proto="http"), None),
    (PROXIED, forwarded(proto="https, http"), None),
    (PROXIED, [*forwarded(), ("x-forwarded-proto", "https")], None),
    (PROXIED, forwarded(host=None), None),
    (PROXIED, forwarded(host="a.example, b.example"), None),
    (PROXIED, [*forwarded(), ("x-forwarded-host", "b.example")], None),
    (PROXIED, forwarded(host="gw.example/path"), None),
    (PROXIED, forwarded(host="gw.example:99999"), None),
    (PROXIED, forwarded(host=""), None),
    (PROXIED, [], None),
    ({}, forwarded(), ORIGIN),
    ({}, [("x-fairlead-host", "localhost:1")], "http://localhost:1"),
    ({}, [("x-fairlead-host", "LocalHost:1")], "http://localhost:1"),
    ({}, [("x-fairlead-host", "[::1]:1")], "http://[::1]:1"),
    ({}, [("x-fairlead-host", "gw.example")], None),
    ({}, [("x-fairlead-host", "10.0.0.1:1")], None),
    ({}, [("x-fairlead-host", "rebound.localhost.evil.example")], None),
]


async def test_the_first_trustworthy_name_counts_or_none(server) -> None:
    plain = server.services.config
    for settings, more, origin in LADDER:
        server.services.config = plain.model_copy(update=settings)
        found = await issuer_of(server, more)
        assert found == origin, (settings, more)


async def issuer_of(server, more: list[tuple[str, str]]) -> str | None:
    """The origin that all three documents agree on, or None where all three are refused."""
    own = [(name, value) for name, value in server.http.headers.items() if name not in dict(more)]
    answers = [
        await server.http.send(httpx.Request("GET", f"http://control{path}", headers=[*own, *more]))
        for path in (SERVER, f"{RESOURCE}/mcp/rpc", RESOURCE)
    ]
    documents = [answer.json() for answer in answers]
    if {answer.status_code for answer in answers} == {503}:
        for document in documents:
            assert document["error"] == "server_error"
            said = document["error_description"]
            assert said.startswith("unable to determine a trustworthy issuer")
        return None
    assert {answer.status_code for answer in answers} == {200}
    origin: str = documents[0]["issuer"]
    for document in documents[1:]:
        assert document == {"resource": f"{origin}/mcp/rpc", "authorization_servers": [origin]}
    assert "evil" not in json.dumps(documents)
    return origin


HERE = Issuer("https://gw.example:8443")


@pytest.mark.parametrize(
    ("uri", "counts"),
    [
        ("https://gw.example:8443/mcp/rpc", True),
        ("HTTPS://GW.Example:8443/mcp/rpc", True),
        ("https://gw.example:8443/mcp/rpc/", False),
        ("https://gw.example:8443/mcp/RPC", False),
        ("https://gw.example:8443/MCP/rpc", False),
        ("https://gw.example:8443/mcp", False),
        ("https://gw.example:8443/", False),
        ("https://gw.example:8443", False),
        ("https://gw.example:8443//mcp/rpc", False),
        ("https://gw.example:8443/./mcp/rpc", False),
        ("https://gw.example:8443/mcp%2frpc", False),
        ("https://gw.example:8443/mcp/%72pc", False),
        ("https://gw.example:8443/mcp/rpc?", False),
        ("https://gw.example:8443/mcp/rpc?x", False),
        ("https://gw.example:8443/mcp/rpc#", False),
        ("https://gw.example:8443/mcp/rpc#x", False),
        ("https://gw.example:8443/mcp/rpc\n", False),
        (" https://gw.example:8443/mcp/rpc", False),
        ("https://gw.example/mcp/rpc", False),
        ("https://gw.example:08443/mcp/rpc", False),
        ("https://gw.example:8444/mcp/rpc", False),
        ("https://u@gw.example:8443/mcp/rpc", False),
        ("https://gw.example.:8443/mcp/rpc", False),
        ("http://gw.example:8443/mcp/rpc", False),
        ("https://evil.example:8443/mcp/rpc", False),
        ("//gw.example:8443/mcp/rpc", False),
        ("/mcp/rpc", False),
        ("urn:mcp:rpc", False),
        ("https://gw.example:8443\\/mcp/rpc", False),
        ("https://\u212aw.example:8443/mcp/rpc", False),
        ("", False),
    ],
)
def test_a_resource_is_ours_but_for_the_case_of_scheme_and_host(uri: str, counts: bool) -> None:
    assert HERE.is_resource(uri) is counts


def test_the_default_port_is_another_text() -> None:
    assert not Issuer("https://gw.example").is_resource("https://gw.example:443/mcp/rpc")
