"""What a key has used of its day: counted, told, bounded, and kept over a restart."""

from __future__ import annotations

import json

import pytest

from fairlead.scrape import router
from fairlead.scrape.limits import owner, quota
from fairlead.scrape.limits.quota import DAY_MS, daily_calls_of
from tests.unit.python.scrape.conftest import run_scraping

pytestmark = pytest.mark.anyio


async def test_a_day_has_room_for_so_many_calls(tmp_path, site) -> None:
    async with run_scraping(tmp_path / "data", scrapeRequestsPerDay=2) as scraping:
        principal = json.dumps({"kind": "key", "id": scraping.owner, "scopes": []})
        answer = await scraping.client.post(
            "/api/scrape",
            json={"url": site.url("/article")},
            headers={"x-fairlead-principal": principal},
        )
        assert answer.headers["x-quota-limit"] == "2"
        assert answer.headers["x-quota-remaining"] == "1"
        await scraping.ask("GET", "/api/reader", url=site.url("/article"))
        refused = await scraping.scrape(site.url("/article"), expect=429)
        assert refused["error"].startswith("Daily quota exceeded")
        assert (refused["dailyLimit"], refused["remaining"]) == (2, 0)
        # To look at what is there costs nothing.
        await scraping.ask("GET", "/api/crawl")
        told = await scraping.ask("GET", "/api/usage")
        assert told["usage"] == {
            "requestsToday": 2,
            "dailyLimit": 2,
            "remaining": 0,
            "unlimited": False,
        }
        await scraping.as_owner("another").scrape(site.url("/article"))


async def test_the_next_day_begins_at_midnight(scraping, site, monkeypatch) -> None:
    day = 20_000
    now = {"ms": day * DAY_MS + DAY_MS - 1000}
    for module in (owner, quota, router):
        monkeypatch.setattr(module, "now_ms", lambda: now["ms"], raising=False)
    await scraping.scrape(site.url("/article"))
    told = await scraping.ask("GET", "/api/usage")
    assert (told["date"], told["usage"]["requestsToday"]) == ("2024-10-04", 1)
    assert (told["usage"]["unlimited"], told["usage"]["remaining"]) == (True, None)
    now["ms"] += 1000
    told = await scraping.ask("GET", "/api/usage")
    assert (told["date"], told["usage"]["requestsToday"]) == ("2024-10-05", 0)


async def test_a_restart_forgets_none(tmp_path, site) -> None:
    async with run_scraping(tmp_path / "data") as scraping:
        for _ in range(2):
            await scraping.scrape(site.url("/article"))
        await daily_calls_of(scraping.services).store_counts()
    async with run_scraping(tmp_path / "data") as scraping:
        await scraping.scrape(site.url("/article"))
        assert (await scraping.ask("GET", "/api/usage"))["usage"]["requestsToday"] == 3
