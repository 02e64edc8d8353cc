"""The control plane without processes: its application on real files, asked as the relay asks
it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from pydantic import SecretStr

from fairlead.control.app import build
from fairlead.gateway.keys.fields import NewKey
from fairlead.gateway.keys.table import StoredKey, insert_key
from fairlead.settings import ControlConfig
from fairlead.store.file import Connection
from fairlead.store.services import Services
from tests.support.databases import CHOSEN_STORE, place_files

LINK_TOKEN = "link-token-of-a-test-on-real-files"
PASSWORD = "correct horse battery staple"
"""The first owner's, where a test gives one."""
LOCAL: dict[str, Any] = {"kind": "local", "id": None, "scopes": []}
ANONYMOUS: dict[str, Any] = {"kind": "anonymous", "id": None, "scopes": []}


@dataclass(frozen=True)
class Management:
    """A running application: `client` asks it as the local command line, `services` is behind
    it.
    """

    client: httpx.AsyncClient
    services: Services

    async def ask(
        self, method: str, path: str, body: Any = None, *, expect: int = 200, **query: Any
    ) -> Any:
        """The answer's JSON; fails unless the answer has the expected status."""
        answer = await self.client.request(method, path, json=body, params=query)
        assert answer.status_code == expect, answer.text
        return answer.json()

    async def refused(
        self, method: str, path: str, body: Any = None, *, expect: int = 400, **query: Any
    ) -> tuple[str, str | None]:
        """The message and field of an error."""
        error = (await self.ask(method, path, body, expect=expect, **query))["error"]
        return error["message"], error["param"]

    def snapshot(self) -> Any:
        """What the relay was last given."""
        return json.loads((self.services.data_dir / "snapshot.json").read_bytes())


def config_in(folder: Path) -> ControlConfig:
    """A configuration with its files in this folder, and a password for the owner."""
    return ControlConfig(
        data_dir=place_files(folder / "data"),
        link_token=SecretStr(LINK_TOKEN),
        control_socket=folder / "control.sock",
        initial_password=SecretStr(PASSWORD),
    )


async def hold_keys(services: Services, *key_ids: str) -> None:
    """Makes keys of these ids, in force, for who asks as the relay does on their behalf."""

    def work(con: Connection) -> None:
        for key_id in key_ids:
            digest = hashlib.sha256(key_id.encode()).hexdigest()
            insert_key(con, StoredKey(key_id, digest, "sk-fl-...", 0, 0, NewKey(name=key_id)))

    await services.state.commit(work)


@asynccontextmanager
async def run_management(data_dir: Path, **settings: Any) -> AsyncIterator[Management]:
    """Starts the application on a data directory and stops it."""
    config = ControlConfig.model_validate(
        {
            **settings,
            "data_dir": place_files(data_dir),
            "link_token": LINK_TOKEN,
            "control_socket": data_dir / "run" / "control.sock",
        }
    )
    async with run_application(config, LOCAL, "127.0.0.1") as (app, client):
        yield Management(client, app.state.services)


@asynccontextmanager
async def run_application(
    config: ControlConfig, principal: dict[str, Any], peer: str, **headers: str
) -> AsyncIterator[tuple[FastAPI, httpx.AsyncClient]]:
    """Starts the application and a client that speaks as the relay does for this principal at this address."""
    url = CHOSEN_STORE.url_of(config.data_dir)
    if url is not None and config.database_url is None:
        config = config.model_copy(update={"database_url": SecretStr(url)})
    app = build(config)
    headers |= {
        "x-fairlead-link": config.link_token.get_secret_value(),
        "x-fairlead-principal": json.dumps(principal),
        "x-fairlead-peer": peer,
        "x-fairlead-request-id": "req-1",
    }
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=transport, base_url="http://control", headers=headers
        ) as client,
    ):
        yield app, client
