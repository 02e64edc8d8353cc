"""What strangers put where credentials, names and logs are, against a running gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.process import free_port
from tests.support.processes import Gateway, expect, start_gateway

PASSWORD = "the owner's own words"
LINE_MAX_BYTES = 16 * 1024


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    issuer = {"ISSUER__PORT": str(free_port()), "ISSUER__ADMIN_PORT": str(free_port())}
    with start_gateway(
        tmp_path_factory.mktemp("edges"),
        INITIAL_PASSWORD=PASSWORD,
        AUTH__ENABLED="true",
        ISSUER__ENABLED="true",
        **issuer,
    ) as running:
        yield running
        running.assert_keeps_secrets()


def test_no_credential_counts_in_an_address(gateway: Gateway) -> None:
    """Addresses stand in histories, logs and referrers."""
    browser = gateway.client()
    answer = browser.post("/api/auth/login", json={"password": PASSWORD})
    expect(answer, 200)
    session = answer.cookies["auth_token"]
    local = (gateway.data_dir / "cli-token").read_text().strip()
    made = expect(gateway.admin.post("/api/auth/tokens", json={"name": "t", "scope": "admin"}), 201)
    gateway.canaries += [session, made["token"]]
    stranger = gateway.client()
    for query in (
        f"auth_token={session}",
        f"token={made['token']}",
        f"access_token={made['token']}",
        f"api_key={gateway.key}",
        f"key={gateway.key}",
        f"x-gateway-cli-token={local}",
    ):
        for path in ("/api/keys", "/api/auth/me", "/api/auth/sessions", "/v1/models"):
            assert stranger.get(f"{path}?{query}").status_code == 401, (path, query)
    expect(browser.get("/api/auth/me"), 200)


def test_a_session_is_gone_for_every_holder_of_its_cookie(gateway: Gateway) -> None:
    browser, thief = gateway.client(), gateway.client()
    expect(browser.post("/api/auth/login", json={"password": PASSWORD}), 200)
    thief.cookies.update(browser.cookies)
    expect(thief.get("/api/auth/me"), 200)
    own = {"origin": gateway.url}
    expect(browser.post("/api/auth/logout", json={}, headers=own), 200)
    assert thief.get("/api/auth/me").status_code == 401


def test_a_session_id_of_the_tool_protocol_is_nobody(gateway: Gateway) -> None:
    """There are no sessions to take over or to fill up: the header means nothing."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for session_id in ("", "1", "x" * 1000, "../../etc/passwd"):
        headers = {"mcp-session-id": session_id, "accept": "application/json, text/event-stream"}
        answer = gateway.client().post("/mcp/rpc", json=ping, headers=headers)
        assert (answer.status_code, answer.content) == (401, b"")
        assert "mcp-session-id" not in answer.headers
        ended = gateway.client().delete("/mcp/rpc", headers=headers)
        assert ended.status_code == 401


BAD = [
    b"a\x1b[31mred\x1b[0m",
    b"a\x1b]0;title\x07",
    b'", "level": "critical", "event": "forged',
    b"\xff\xfe",
    b"\x7f\x85",
]


def test_what_strangers_send_never_breaks_a_line_of_the_log(gateway: Gateway) -> None:
    client = gateway.client()
    for text in BAD:
        headers = {b"user-agent": text, b"referer": text, b"x-request-id": text}
        client.get("/api/keys", headers=headers)
        client.post("/api/auth/login", json={"password": "wrong"}, headers=headers)
        readable = text.decode("utf-8", "replace")
        named = {"email": f"{readable}@example.org", "password": readable or "x"}
        client.post("/api/auth/login", json=named)
        client.get("/", params={"oidc_error": readable})
        client.get("/login", params={"return_to": readable, "oidc_error": readable})
        redirects = ["http://127.0.0.1/"]
        client.post("/oauth/register", json={"client_name": readable, "redirect_uris": redirects})
        client.get("/oauth/authorize", params={"client_id": readable, "state": readable})
        client.get("/oauth/authorize", params={"client_id": f"https://t.invalid/{readable}"})
        client.post(f"/agents/{'x' * 300}", json={"jsonrpc": "2.0", "id": readable, "method": "x"})
    client.post("/oauth/register", json={"client_name": "x\nforged=1\r\n" * 5, "redirect_uris": []})
    client.get("/api/keys", headers={"user-agent": "u" * 20_000})
    log = gateway.log_path.read_bytes()
    assert log
    for line in log.split(b"\n"):
        assert len(line) < LINE_MAX_BYTES
        assert re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", line) is None, line
        assert b"forged" not in line.split(b'"', 1)[0]
