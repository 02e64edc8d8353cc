"""The control plane's application in this process, driven as the relay drives it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from fairlead.control.app import build
from fairlead.settings import ControlConfig
from tests.support.databases import place_files

LINK_TOKEN = "t" * 32
PASSWORD = "correct horse battery staple"


@dataclass
class Control:
    """`client` speaks as the local command line from 192.0.2.1."""

    app: FastAPI
    client: httpx.AsyncClient
    data_dir: Path

    def as_principal(
        self, kind: str, principal_id: str | None = None, scopes: list[str] | None = None
    ) -> dict[str, str]:
        principal = {"kind": kind, "id": principal_id, "scopes": scopes or []}
        return {"x-fairlead-principal": json.dumps(principal)}

    def snapshot(self) -> dict:
        return json.loads((self.data_dir / "snapshot.json").read_bytes())


@pytest.fixture
def config(tmp_path: Path) -> ControlConfig:
    return ControlConfig(
        data_dir=place_files(tmp_path / "data"),
        link_token=LINK_TOKEN,
        control_socket=tmp_path / "control.sock",
        initial_password=PASSWORD,
    )


@pytest.fixture
async def control(config: ControlConfig) -> AsyncIterator[Control]:
    app = build(config)
    headers = {
        "x-fairlead-link": LINK_TOKEN,
        "x-fairlead-principal": '{"kind": "local", "id": null, "scopes": []}',
        "x-fairlead-peer": "192.0.2.1",
        "x-fairlead-request-id": "req-1",
    }
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://control", headers=headers
        ) as client,
    ):
        yield Control(app, client, config.data_dir)
