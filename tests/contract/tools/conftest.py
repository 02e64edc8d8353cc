"""Both tool endpoints in this process, asked as the relay asks for a stranger on this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from fairlead.mcp.revision import STATELESS
from fairlead.records.static_tokens import insert_static_token, make_static_token
from tests.support.management import ANONYMOUS, PASSWORD, config_in, run_application
from tests.support.put_back import SharedApplications, Started
from tests.support.tool_client import ToolClient

HOST = "127.0.0.1:20128"
ORIGIN = f"http://{HOST}"
METADATA = f'resource_metadata="{ORIGIN}/.well-known/oauth-protected-resource/mcp/rpc"'
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
CLIENT = {"name": "test", "version": "1"}


@dataclass
class ToolEndpoints:
    """Both endpoints; `http` speaks as the relay does for a stranger on this machine."""

    app: FastAPI
    http: httpx.AsyncClient
    access: str = ""
    static: str = ""
    session: dict[str, str] = field(default_factory=dict)

    async def send(
        self, path: str, said: Any, *, method: str = "POST", **headers: str
    ) -> httpx.Response:
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        named = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
        if path == "/mcp/rpc" and "authorization" not in named:
            named["authorization"] = f"Bearer {self.access}"
        return await self.http.request(method, path, content=content, headers=named)

    async def rpc(self, method: str, params: Any = None, **headers: str) -> httpx.Response:
        said = {"jsonrpc": "2.0", "id": 1, "method": method}
        return await self.send(
            "/mcp/rpc", said | ({} if params is None else {"params": params}), **headers
        )

    async def stateless(
        self, method: str, params: dict[str, Any] | None = None, **bent: Any
    ) -> httpx.Response:
        meta = {
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": CLIENT,
        } | bent.pop("meta", {})
        headers = {"mcp_protocol_version": STATELESS, "mcp_method": method}
        if params and "name" in params:
            headers["mcp_name"] = params["name"]
        headers = {name: value for name, value in (headers | bent).items() if value is not None}
        meta = {name: value for name, value in meta.items() if value is not None}
        return await self.rpc(method, {**(params or {}), "_meta": meta}, **headers)

    async def legacy(self, said: Any, **headers: str) -> httpx.Response:
        return await self.send("/mcp", said, **headers)


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


@pytest.fixture(scope="module")
async def applications(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[SharedApplications]:
    def start(settings: dict[str, Any]) -> AbstractAsyncContextManager[Started]:
        config = config_in(tmp_path_factory.mktemp("tools")).model_copy(update=settings)
        return run_application(config, ANONYMOUS, "127.0.0.1", **{"x-fairlead-host": HOST})

    async with SharedApplications(start) as running:
        yield running


@pytest.fixture
async def endpoints(
    applications: SharedApplications, settings: dict[str, Any]
) -> AsyncIterator[ToolEndpoints]:
    async with applications.lease(settings) as (app, http):
        yield ToolEndpoints(app, http)


@pytest.fixture
async def owner(endpoints: ToolEndpoints) -> ToolEndpoints:
    """The owner with a session, a static token and a tool client's access token."""
    answer = await endpoints.http.post("/api/auth/login", json={"password": PASSWORD})
    cookie = answer.cookies["auth_token"]
    endpoints.http.cookies.clear()
    who = (await endpoints.http.get("/api/auth/me", headers=session_of(endpoints, "?"))).status_code
    assert who == 401
    tool = ToolClient(endpoints.http, ORIGIN)
    await tool.register()
    endpoints.access = (await tool.tokens(cookie))["access_token"]
    services = endpoints.app.state.services
    user_id = await services.state.read(
        lambda con: con.execute("SELECT id FROM users").fetchone()[0]
    )
    endpoints.session = session_of(endpoints, user_id, "manage")
    endpoints.static = await static_token(endpoints, user_id)
    return endpoints


def session_of(endpoints: ToolEndpoints, user_id: str, *scopes: str) -> dict[str, str]:
    principal = {"kind": "session", "id": user_id, "scopes": scopes}
    return {"x-fairlead-principal": json.dumps(principal)}


async def static_token(endpoints: ToolEndpoints, user_id: str) -> str:
    text, token = make_static_token(user_id, "test")
    state = endpoints.app.state.services.state
    await state.record(lambda con: insert_static_token(con, token, text))
    return text


def is_empty(answer: httpx.Response) -> bool:
    return answer.content == b"" and "content-type" not in answer.headers
