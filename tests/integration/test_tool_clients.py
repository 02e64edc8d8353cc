"""Tool clients of others, unchanged, from nothing to tools and back after their token ended: PyPI's `mcp` with its
OAuth provider and npm's `mcp-remote`. The person is a headless Chromium.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.callback import Callback
from tests.support.documents import DocumentHost
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect, start_gateway

CHROMIUM = shutil.which("chromium")
NODE = Path(__file__).parents[1] / "support" / "node"
PASSWORD = "correct horse battery staple"

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium"),
]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with start_gateway(tmp_path, INITIAL_PASSWORD=PASSWORD) as running:
        yield running
        running.assert_keeps_secrets()


async def approve(url: str, until: str) -> None:
    """Opens the address as a person's browser does, logs in, approves, and waits to be sent back."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        # In a container there is no other user than root, whom Chromium's sandbox refuses.
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, chromium_sandbox=os.geteuid() != 0
        )
        page = await browser.new_page()
        page.set_default_timeout(20_000)
        await page.goto(url)
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Log in").click()
        await page.get_by_role("button", name="Approve").click()
        await page.wait_for_url(until)
        await browser.close()


class Storage:
    """What the client keeps between two runs."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


def test_pypi_mcp_goes_the_whole_way(gateway: Gateway) -> None:
    with Callback() as callback:
        asyncio.run(connect_with_mcp(gateway, callback))


def test_pypi_mcp_is_known_by_its_document(tmp_path: Path) -> None:
    """It does not register where it reads that it need not."""
    shim = tmp_path / "shim"
    shim.mkdir()
    with DocumentHost(tmp_path) as host, Callback() as callback:
        # The gateway trusts the certificates that certifi lists: this host's stands in their place.
        (shim / "sitecustomize.py").write_text(
            f"import certifi\n\ncertifi.where = lambda: {str(host.certificate)!r}\n"
        )
        paths = [str(shim), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            "INITIAL_PASSWORD": PASSWORD,
            "PYTHONPATH": os.pathsep.join(paths),
            "FAIRLEAD_ALLOW_PRIVATE_FETCH": "127.0.0.0/8",
        }
        # The client listens at whichever port is free.
        registered = callback.url.replace(f":{callback.url.split(':')[2].split('/')[0]}", "")
        document = host.put(
            "/tool.json",
            {"client_name": "By document", "redirect_uris": [registered]},
        )
        with start_gateway(tmp_path, **environment) as gateway:
            asyncio.run(connect_with_mcp(gateway, callback, document))
            gateway.assert_keeps_secrets()
        assert host.asked == ["/tool.json"]


async def connect_with_mcp(
    gateway: Gateway, callback: Callback, document: str | None = None
) -> None:
    import httpx2
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    url = f"{gateway.url}/mcp/rpc"
    storage = Storage()
    asked: list[str] = []

    async def to_browser(address: str) -> None:
        asked.append(address)
        await approve(address, f"{callback.url}?**")

    async def answer() -> AuthorizationCodeResult:
        said = await asyncio.to_thread(callback.take)
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])

    def provider() -> OAuthClientProvider:
        metadata = OAuthClientMetadata(client_name="PyPI mcp", redirect_uris=[callback.url])
        return OAuthClientProvider(
            url, metadata, storage, to_browser, answer, client_metadata_url=document
        )

    async def list_tools(auth: OAuthClientProvider) -> list[str]:
        async with (
            httpx2.AsyncClient(auth=auth, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await client.call_tool("projects_create", {"name": "By tool"})
            return [tool.name for tool in (await client.list_tools()).tools]

    working = provider()
    assert "todos_list" in await list_tools(working)
    assert len(asked) == 1
    first = storage.tokens
    assert document is None or storage.client.client_id == document
    gateway.canaries += [first.access_token, first.refresh_token]
    assert await list_tools(provider())
    assert storage.tokens == first

    # Its access token ends while it works: it refreshes, without a browser.
    working.context.token_expiry_time = 1.0
    assert await list_tools(working)
    assert len(asked) == 1
    assert storage.tokens.access_token != first.access_token
    assert storage.tokens.refresh_token != first.refresh_token
    gateway.canaries += [storage.tokens.access_token, storage.tokens.refresh_token]
    projects = expect(gateway.admin.get("/api/board/projects"), 200)["projects"]
    assert [project["name"] for project in projects].count("By tool") == 3


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE / "node_modules" / "mcp-remote").is_dir(),
    reason="npm's mcp-remote is not installed in tests/support/node",
)
def test_npm_mcp_remote_goes_the_whole_way(gateway: Gateway, tmp_path: Path) -> None:
    """It opens a browser itself: the one it finds here writes the address down."""
    address = tmp_path / "address"
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(
        f'#!/bin/sh\nprintf "%s" "$1" > "{address}.new" && mv "{address}.new" "{address}"\n'
    )
    opener.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{opener.parent}:{os.environ['PATH']}",
        "MCP_REMOTE_CONFIG_DIR": str(tmp_path / "kept"),
    }
    log = tmp_path / "mcp-remote.log"

    def run(before: Callable[[], None]) -> list[str]:
        proxy = NODE / "node_modules" / "mcp-remote" / "dist" / "proxy.js"
        command = ["node", str(proxy), f"{gateway.url}/mcp/rpc", "--allow-http"]
        pipe = subprocess.PIPE
        with (
            log.open("wb") as told,
            subprocess.Popen(
                command, env=environment, stdin=pipe, stdout=pipe, stderr=told
            ) as running,
        ):
            try:
                before()
                return speak(running)
            finally:
                running.terminate()

    def first() -> None:
        eventually(
            lambda: address.exists() or authorize_url(log.read_text()),
            "mcp-remote asks for a browser",
            within_s=40,
        )
        url = address.read_text() if address.exists() else authorize_url(log.read_text())
        assert url is not None
        asyncio.run(approve(url, "http://localhost:*/oauth/callback?**"))

    def tokens() -> Any:
        [kept] = (tmp_path / "kept").rglob("*_tokens.json")
        found = json.loads(kept.read_text())
        gateway.canaries.extend((found["access_token"], found["refresh_token"]))
        return found

    assert "todos_list" in run(first)
    issued = tokens()
    address.unlink(missing_ok=True)
    assert "todos_list" in run(lambda: None)
    assert tokens() == issued
    # Its access token ends: it refreshes, without a browser.
    ended = gateway.client().post("/oauth/revoke", data={"token": issued["access_token"]})
    assert ended.status_code == 200
    assert "todos_list" in run(lambda: None)
    assert tokens()["refresh_token"] != issued["refresh_token"]
    assert not address.exists()


def authorize_url(log: str) -> str | None:
    found = re.search(r"http://\S+/oauth/authorize\?\S+", log)
    return found[0] if found else None


def speak(running: subprocess.Popen[bytes]) -> list[str]:
    """What a program says that has the tools over standard input and output; the tools' names."""
    assert running.stdin is not None
    assert running.stdout is not None

    def send(**message: Any) -> None:
        assert running.stdin is not None
        running.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        running.stdin.flush()

    def receive(wanted: int) -> Any:
        assert running.stdout is not None
        for line in running.stdout:
            said = json.loads(line)
            if said.get("id") == wanted:
                return said["result"]
        raise AssertionError("mcp-remote ended")

    about = {"name": "test", "version": "1"}
    send(
        id=1,
        method="initialize",
        params={
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": about,
        },
    )
    receive(1)
    send(method="notifications/initialized")
    send(id=2, method="tools/list")
    return [tool["name"] for tool in receive(2)["tools"]]
