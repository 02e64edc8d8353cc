"""`/mcp/rpc` before any message is read: who is refused, by which status, headers and body."""

from __future__ import annotations

import pytest

from .conftest import JSON, METADATA, ORIGIN, is_empty

pytestmark = pytest.mark.anyio


async def test_without_credentials_there_is_a_challenge_and_nothing_else(owner) -> None:
    for method in ("POST", "GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
        answer = await owner.http.request(method, "/mcp/rpc", headers=JSON)
        assert answer.status_code == 401, method
        assert is_empty(answer)
        assert answer.headers["www-authenticate"] == f"Bearer {METADATA}"
    # Neither a cookie, nor a static token, nor a token in the address is a credential here.
    for answer in (
        await owner.http.post("/mcp/rpc", json={}, headers=owner.session),
        await owner.http.post(f"/mcp/rpc?access_token={owner.access}", json={}),
    ):
        assert (answer.status_code, is_empty(answer)) == (401, True)
        assert answer.headers["www-authenticate"] == f"Bearer {METADATA}"


async def test_a_bearer_that_is_no_good_is_an_invalid_token_whatever_the_cookie(owner) -> None:
    for shown in ("Bearer nonsense", f"Bearer {owner.static}", "Basic eDp5", "Bearer"):
        for extra in ({}, owner.session):
            answer = await owner.http.post(
                "/mcp/rpc", json={}, headers={"authorization": shown} | extra
            )
            assert (answer.status_code, is_empty(answer)) == (401, True), shown
            challenge = answer.headers["www-authenticate"]
            assert challenge == f'Bearer error="invalid_token", {METADATA}'


async def test_pages_of_other_origins_are_refused_before_anybody_is_looked_at(owner) -> None:
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:20128"},
        {"origin": "http://127.0.0.1:20129"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        for method in ("POST", "GET", "OPTIONS"):
            answer = await owner.http.request(method, "/mcp/rpc", headers=headers)
            assert (answer.status_code, is_empty(answer)) == (403, True), headers
            assert "www-authenticate" not in answer.headers
            assert "access-control-allow-origin" not in answer.headers
    answer = await owner.rpc("ping", origin=ORIGIN)
    assert answer.status_code == 200


async def test_a_name_that_is_not_the_gateways_is_refused(owner) -> None:
    for host in ("evil.example", "evil.example:20128", "127.0.0.1.evil.example", "10.0.0.9:20128"):
        answer = await owner.rpc("ping", x_fairlead_host=host, origin=f"http://{host}")
        assert answer.status_code == 421, host
    assert (await owner.rpc("ping", x_fairlead_host="localhost:20128")).status_code == 401


async def test_other_methods_are_refused_with_the_one_there_is(owner) -> None:
    for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
        answer = await owner.send("/mcp/rpc", b"", method=method)
        assert (answer.status_code, is_empty(answer)) == (405, True)
        assert answer.headers["allow"] == "POST"


async def test_one_spelling_is_the_endpoint_the_other_leads_there(owner) -> None:
    for method in ("GET", "POST"):
        answer = await owner.http.request(method, "/mcp/rpc/", headers=JSON)
        assert (answer.status_code, answer.headers["location"]) == (308, "/mcp/rpc")


async def test_media_types(owner) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert (await owner.rpc("ping", content_type=kind)).status_code == 415, kind
    assert (await owner.rpc("ping", content_type="application/json; charset=utf-8")).is_success
    for accept, expected in (
        ("application/json, text/event-stream", "application/json"),
        ("text/event-stream, application/json", "application/json"),
        ("*/*", "application/json"),
        ("application/json;q=0, text/event-stream", "text/event-stream; charset=utf-8"),
        ("text/event-stream", "text/event-stream; charset=utf-8"),
    ):
        answer = await owner.rpc("ping", accept=accept)
        assert (answer.status_code, answer.headers["content-type"]) == (200, expected), accept
    event = (await owner.rpc("ping", accept="text/event-stream")).text
    assert event == 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    answer = await owner.rpc("ping", accept="text/html")
    assert (answer.status_code, is_empty(answer)) == (406, True)


@pytest.mark.parametrize("settings", [{"service_trust_proxy": True}])
async def test_behind_a_proxy_that_says_nothing_it_fails_closed(endpoints) -> None:
    answer = await endpoints.rpc("ping", authorization="Bearer x")
    assert (answer.status_code, is_empty(answer)) == (503, True)
    said = {"x_forwarded_proto": "https", "x_forwarded_host": "board.example.org"}
    answer = await endpoints.rpc("ping", authorization="Bearer x", **said)
    assert answer.status_code == 401
    assert '"https://board.example.org/.well-known/' in answer.headers["www-authenticate"]
    answer = await endpoints.rpc("ping", authorization="Bearer x", origin=ORIGIN, **said)
    assert answer.status_code == 403
