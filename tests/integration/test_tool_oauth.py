"""The authorization server behind the relay: what programs and pages of others meet on the wire."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.tool_client import ToolClient

PASSWORD = "the owner's own words"
NODE = Path(__file__).parents[1] / "support" / "node"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    # Behind a proxy that names whom the windows count, so that tests do not share them.
    with start_gateway(
        tmp_path_factory.mktemp("tool-oauth"),
        INITIAL_PASSWORD=PASSWORD,
        SERVICE_TRUST_PROXY="1",
        SERVICE_PUBLIC_BASE_URL=f"http://127.0.0.1:{free_port()}",
    ) as running:
        yield running
        running.assert_keeps_secrets()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with start_gateway(
        tmp_path_factory.mktemp("plain-oauth"), INITIAL_PASSWORD=PASSWORD
    ) as running:
        yield running
        running.assert_keeps_secrets()


def sign_in(gateway: Gateway) -> str:
    answer = gateway.client().post("/api/auth/login", json={"password": PASSWORD})
    expect(answer, 200)
    token: str = answer.cookies["auth_token"]
    gateway.canaries.append(token)
    return token


def client_of(gateway: Gateway, http: httpx.AsyncClient, origin: str | None = None) -> ToolClient:
    return ToolClient(http, origin or gateway.url)


def wire(gateway: Gateway) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=60)
    return httpx.AsyncClient(base_url=gateway.url, trust_env=False, timeout=20.0, limits=limits)


@pytest.mark.anyio
async def test_the_whole_way(plain: Gateway) -> None:
    session = sign_in(plain)
    async with wire(plain) as http:
        tool = client_of(plain, http)
        for path in ("", "/mcp/rpc"):
            found = await http.get(f"/.well-known/oauth-protected-resource{path}")
            assert found.json() == {
                "resource": tool.resource,
                "authorization_servers": [plain.url],
            }
        assert (await tool.register()).status_code == 201
        assert "Log in to connect" in (await tool.page()).text
        assert "Approve access" in (await tool.page(cookie=session)).text
        issued = await tool.tokens(session)
        plain.canaries += [issued["access_token"], issued["refresh_token"]]
        renewed = (await tool.refresh(issued["refresh_token"])).json()
        plain.canaries += [renewed["access_token"], renewed["refresh_token"]]
        [grant] = expect(plain.admin.get("/api/auth/grants"), 200)["grants"]
        assert grant["clientId"] == tool.client_id
        expect(plain.admin.delete(f"/api/auth/grants/{grant['id']}"), 200)
        gone = await tool.refresh(renewed["refresh_token"])
        assert (gone.status_code, gone.json()["error"]) == (400, "invalid_grant")


@pytest.mark.anyio
async def test_the_relay_leaves_credentials_and_origins_to_the_page(plain: Gateway) -> None:
    session = sign_in(plain)
    async with wire(plain) as http:
        tool = client_of(plain, http)
        await tool.register()
        # A page of ours in an older browser, behind no proxy: the Referer alone says so.
        by_referer = {"referer": f"{plain.url}/oauth/authorize?x"}
        assert (await tool.decide(session, headers=by_referer)).status_code == 302
        for headers in ({}, {"origin": "null"}, {"origin": "https://evil.example"}):
            answer = await tool.decide(session, headers=headers)
            assert (answer.status_code, "location" in answer.headers) == (400, False)
            assert "Invalid request origin" in answer.text
        # Credentials of other families are nobody's business here.
        for shown in ("Basic eDp5", "Bearer nonsense", f"Bearer {plain.key}", "x"):
            tool.headers = {"authorization": shown}
            answer = await tool.exchange("unknown")
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), shown


@pytest.mark.anyio
async def test_what_the_relay_refuses_it_tells_as_oauth_does(plain: Gateway) -> None:
    async with wire(plain) as http:
        big = await http.post("/oauth/register", json={"x": "y" * 100_000})
        assert (big.status_code, big.json()["error"]) == (413, "invalid_request")
        for method, path, allow in (
            ("GET", "/oauth/token", "POST"),
            ("GET", "/oauth/register", "POST"),
            ("PUT", "/oauth/authorize", "GET, POST, HEAD"),
            ("POST", "/.well-known/oauth-authorization-server", "GET, HEAD"),
        ):
            answer = await http.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, allow)
            assert answer.json()["error"] == "invalid_request"
        for path in ("/oauth/token/", "/OAUTH/token", "/oauth//token", "/oauth/x"):
            assert (await http.post(path)).status_code == 404


@pytest.mark.anyio
async def test_fifty_at_once_on_the_wire(gateway: Gateway) -> None:
    session = sign_in(gateway)
    origin = httpx.get(
        f"{gateway.url}/.well-known/oauth-authorization-server", trust_env=False
    ).json()["issuer"]
    async with wire(gateway) as http:
        tool = client_of(gateway, http, origin)
        await tool.register()
        code = await tool.code(session)
        answers = await asyncio.gather(*(tool.exchange(code) for _ in range(50)))
        assert sorted(answer.status_code for answer in answers) == [200] + [400] * 49
        assert {a.json()["error"] for a in answers if a.status_code == 400} == {"invalid_grant"}

        tool.headers = {"x-forwarded-for": "198.51.100.7"}
        first = await tool.tokens(session)
        answers = await asyncio.gather(*(tool.refresh(first["refresh_token"]) for _ in range(50)))
        assert {answer.status_code for answer in answers} == {200}
        assert sum("refresh_token" in answer.json() for answer in answers) == 1


async def exchange_under_fire(
    tool: ToolClient, codes: list[str], fire: Callable[[], None]
) -> list[httpx.Response | None]:
    """Exchanges all codes at once and pulls the plug when the first one is answered."""
    fired = False

    async def one(code: str) -> httpx.Response | None:
        nonlocal fired
        try:
            answer = await tool.exchange(code)
        except httpx.HTTPError:
            return None
        if not fired:
            fired = True
            fire()
        return answer

    return list(await asyncio.gather(*(one(code) for code in codes)))


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("round_", range(3))
async def test_after_kill_9_no_code_counts_twice_and_one_generation_lives(
    gateways: Callable[..., Gateway], round_: int
) -> None:
    await kill_and_look(gateways, codes=10 + 10 * round_)


@pytest.mark.anyio
async def test_after_kill_9_a_told_pair_is_kept(gateways: Callable[..., Gateway]) -> None:
    await kill_and_look(gateways, codes=8)


async def kill_and_look(gateways: Callable[..., Gateway], codes: int) -> None:
    """Control dies while codes are being exchanged. What was told is kept and its code is spent; what
    was not told is spent or whole; and a rotation that was told is the only one.
    """
    origin = f"http://127.0.0.1:{free_port()}"
    gateway = gateways(
        INITIAL_PASSWORD=PASSWORD,
        FAIRLEAD_OAUTH_REFRESH_GRACE_S="0",
        SERVICE_TRUST_PROXY="1",
        SERVICE_PUBLIC_BASE_URL=origin,
    )
    session = sign_in(gateway)
    async with wire(gateway) as http:
        tool = client_of(gateway, http, origin)
        await tool.register()
        waiting = [await tool.code(session) for _ in range(codes)]
        lasting = await tool.tokens(session)
        worker = gateway.control
        answers = await exchange_under_fire(tool, waiting, lambda: worker.signal(signal.SIGKILL))
        eventually(
            lambda: gateway.manages() and gateway.control.pid != worker.pid,
            "control is back",
            within_s=30,
        )
        gateway.remember_processes()
        told = [
            answer.json() if answer is not None and answer.status_code == 200 else None
            for answer in answers
        ]
        assert any(told)
        # The clock of codes goes on: they are good for a minute.
        for number, (code, pair) in enumerate(zip(waiting, told, strict=True)):
            # Sixty requests a minute from one address are the limit.
            tool.headers = {"x-forwarded-for": f"198.51.100.{number}"}
            again = await tool.exchange(code)
            if pair is not None:
                # Its code comes again, so its pair ends: the pair was there.
                assert again.status_code == 400, again.text
                refreshed = await tool.refresh(pair["refresh_token"])
                assert refreshed.status_code == 400
            elif again.status_code == 200:
                assert (await tool.exchange(code)).status_code == 400
        renewed = await tool.refresh(lasting["refresh_token"])
        assert renewed.status_code == 200, renewed.text
        gateway.control.signal(signal.SIGKILL)
        eventually(gateway.manages, "control is back again", within_s=30)
        gateway.remember_processes()
        newest = await tool.refresh(renewed.json()["refresh_token"])
        assert newest.status_code == 200, newest.text
        assert (await tool.refresh(lasting["refresh_token"])).status_code == 400
        assert (await tool.refresh(newest.json()["refresh_token"])).status_code == 400


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE / "node_modules" / "oauth4webapi").is_dir(),
    reason="npm's oauth4webapi is not installed in tests/support/node",
)
def test_a_strict_reader_of_the_standards_passes(plain: Gateway) -> None:
    session = sign_in(plain)
    registered, asked = "http://127.0.0.1:1/callback", "http://127.0.0.1:50123/callback"
    command = ["node", "oauth_client.mjs", plain.url, session, registered, asked]
    ran = subprocess.run(command, cwd=NODE, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said == {"expires_in": 3600, "token_type": "bearer", "refused": "invalid_grant"}
