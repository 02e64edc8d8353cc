from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.store.services import Services
from tests.support.management import hold_keys, run_management
from tests.support.site import BRISK, Site

# The keys that tests ask as.
OWNERS = ("k1", "another", "copier", "forgetter", "somebody", "stranger", "watcher")


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with Site() as running:
        yield running


class Scraping:
    """The scraping API as the key `owner` sees it."""

    def __init__(self, client: httpx.AsyncClient, services: Services, owner: str = "k1") -> None:
        self.client = client
        self.services = services
        self.owner = owner

    async def ask(
        self, method: str, path: str, body: Any = None, *, expect: int = 200, **query: Any
    ) -> Any:
        principal = {"kind": "key", "id": self.owner, "scopes": []}
        answer = await self.client.request(
            method,
            path,
            json=body,
            params=query or None,
            headers={"x-fairlead-principal": json.dumps(principal)},
        )
        assert answer.status_code == expect, answer.text
        return answer.json()

    async def scrape(self, url: str, *, expect: int = 200, **options: Any) -> Any:
        return await self.ask(
            "POST", "/api/scrape", {"url": url, "options": options}, expect=expect
        )

    def as_owner(self, owner: str) -> Scraping:
        return Scraping(self.client, self.services, owner)


@asynccontextmanager
async def run_scraping(data_dir: Path, **settings: Any) -> AsyncIterator[Scraping]:
    private = settings.pop("private", "127.0.0.0/8")
    async with run_management(data_dir, allow_private_fetch=private) as management:
        await management.ask("PATCH", "/api/settings", {**BRISK, **settings})
        held = management.services.state.read(
            lambda con: con.execute("SELECT count(*) FROM keys").fetchone()
        )
        if await held == (0,):
            await hold_keys(management.services, *OWNERS)
        yield Scraping(management.client, management.services)


@pytest.fixture
async def scraping(tmp_path: Path) -> AsyncIterator[Scraping]:
    async with run_scraping(tmp_path / "data") as running:
        yield running
