"""The authorization server in this process: a person with a session, and a tool client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request

from fairlead.calls.caller import Caller, Principal
from fairlead.identity.oauth.service import OAuthService, oauth_service
from fairlead.store.services import Services
from fairlead.store.tool_access import ToolRefusal, ToolUser
from tests.support.management import ANONYMOUS, PASSWORD, config_in, run_application
from tests.support.put_back import SharedApplications, Started
from tests.support.tool_client import ToolClient

HOST = "127.0.0.1:20128"
ORIGIN = f"http://{HOST}"


class Clock:
    """The wall clock of codes and tokens; it stands still until it is moved."""

    def __init__(self) -> None:
        self.ms = 1_900_000_000_000

    def __call__(self) -> int:
        return self.ms

    def pass_s(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Server:
    """Control with its authorization server; `http` speaks as the relay does for a stranger."""

    def __init__(self, app: FastAPI, http: httpx.AsyncClient, oauth: OAuthService) -> None:
        self.app = app
        self.http = http
        self.oauth = oauth
        self.services: Services = app.state.services

    async def sign_in(self, email: str | None = None, password: str = PASSWORD) -> str:
        """The text of a fresh session's cookie; the limiter's windows start afresh."""
        self.app.state.sign_in.window._windows.clear()
        body = {"password": password} | ({"email": email} if email else {})
        answer = await self.http.post("/api/auth/login", json=body)
        assert answer.status_code == 200, answer.text
        token: str = answer.cookies["auth_token"]
        self.http.cookies.clear()
        return token

    def unlimit(self) -> None:
        """Fresh windows."""
        for window in (self.oauth.registrations, self.oauth.token_requests, self.oauth.revocations):
            window._windows.clear()

    async def resolve(self, *authorization: str, **headers: str) -> ToolUser | ToolRefusal:
        """What the tool endpoint is told."""
        raw = [(b"authorization", value.encode()) for value in authorization]
        raw += [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ]
        scope = {"type": "http", "method": "POST", "path": "/mcp/rpc", "headers": raw}
        caller = Caller(Principal("anonymous"), "192.0.2.1", "req-1", "http", HOST)
        assert self.services.tool_access is not None
        return await self.services.tool_access.resolve(Request(scope), caller)

    async def counts(self, token: str) -> bool:
        """Whether an access token opens the tool endpoint."""
        return isinstance(await self.resolve(f"Bearer {token}"), ToolUser)


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


@pytest.fixture(scope="module")
async def applications(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[SharedApplications]:
    def start(settings: dict[str, Any]) -> AbstractAsyncContextManager[Started]:
        config = config_in(tmp_path_factory.mktemp("oauth")).model_copy(update=settings)
        return run_application(config, ANONYMOUS, "192.0.2.1", **{"x-fairlead-host": HOST})

    async with SharedApplications(start) as running:
        yield running


@pytest.fixture
async def server(
    applications: SharedApplications, settings: dict[str, Any], clock: Clock
) -> AsyncIterator[Server]:
    async with applications.lease(settings) as (app, http):
        oauth = oauth_service(app.state.services)
        oauth.ledger._clock = clock
        yield Server(app, http, oauth)


@pytest.fixture
async def session(server: Server) -> str:
    return await server.sign_in()


@pytest.fixture
async def tool(server: Server) -> ToolClient:
    """A registered client."""
    tool = ToolClient(server.http, ORIGIN)
    answer = await tool.register()
    assert answer.status_code == 201, answer.text
    return tool
