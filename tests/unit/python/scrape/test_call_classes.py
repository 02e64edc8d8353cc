"""Classes of calls in a minute: each with its own limit, in headers of every answer."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from fairlead.moment import now_ms
from fairlead.store.call_windows import WINDOW_MS, CallWindows
from tests.unit.python.scrape.conftest import Scraping, run_scraping

pytestmark = pytest.mark.anyio


async def call(scraping: Scraping, method: str, path: str, body: Any = None) -> httpx.Response:
    principal = {"kind": "key", "id": scraping.owner, "scopes": []}
    return await scraping.client.request(
        method, path, json=body, headers={"x-fairlead-principal": json.dumps(principal)}
    )


def figures(answer: httpx.Response) -> tuple[int, int]:
    headers = answer.headers
    assert 1 <= int(headers["ratelimit-reset"]) <= 60
    assert headers["ratelimit-policy"] == f"{headers['ratelimit-limit']};w=60"
    return int(headers["ratelimit-limit"]), int(headers["ratelimit-remaining"])


async def test_each_class_has_its_own_limit(tmp_path, site) -> None:
    limits = {
        "scrapeExpensivePerMinute": 3,
        "scrapeCrawlsPerMinute": 1,
        "scrapeStatusPerMinute": 4,
        "scrapeRequestsPerMinute": 100,
    }
    page = {"url": site.url("/pages/59")}
    async with run_scraping(tmp_path / "data", **limits) as scraping:
        assert figures(await call(scraping, "POST", "/api/crawl", page)) == (1, 0)
        refused = await call(scraping, "POST", "/v2/crawl", page)
        assert (refused.status_code, figures(refused)) == (429, (1, 0))
        assert refused.headers["retry-after"] == refused.headers["ratelimit-reset"]
        for left in (2, 1, 0):
            assert figures(await call(scraping, "POST", "/api/scrape", page)) == (3, left)
        refused = await call(scraping, "POST", "/v2/scrape", page)
        assert (refused.status_code, figures(refused)) == (429, (3, 0))
        assert refused.json()["success"] is False
        # To look is another class.
        for left in (3, 2, 1, 0):
            assert figures(await call(scraping, "GET", "/api/crawl")) == (4, left)
        assert (await call(scraping, "DELETE", "/api/crawl/none")).status_code == 429
        other = scraping.as_owner("another")
        assert (await call(other, "POST", "/api/scrape", page)).status_code == 200


async def test_a_day_that_is_used_up_has_its_figures(tmp_path, site) -> None:
    async with run_scraping(tmp_path / "data", scrapeRequestsPerDay=1) as scraping:
        page = {"url": site.url("/pages/59")}
        first = await call(scraping, "POST", "/api/scrape", page)
        assert (first.status_code, first.headers["x-quota-remaining"]) == (200, "0")
        refused = await call(scraping, "POST", "/api/scrape", page)
        assert refused.status_code == 429
        assert refused.headers["x-quota-limit"] == "1"
        assert refused.headers["x-quota-remaining"] == "0"
        assert refused.headers["retry-after"]


async def test_nodes_of_one_database_count_together(scraping) -> None:
    """Two processes' windows on one database."""
    first, second = CallWindows(scraping.services), CallWindows(scraping.services)
    first._is_shared = second._is_shared = True
    at_ms = now_ms()
    assert [window.calls for window in await first.count(["a", "b"], at_ms)] == [1, 1]
    assert [window.calls for window in await second.count(["b", "a"], at_ms + 10)] == [2, 2]
    (window,) = await first.count(["a"], at_ms + WINDOW_MS - 1)
    assert (window.calls, window.ends_at_ms) == (3, at_ms + WINDOW_MS)
    (window,) = await second.count(["a"], at_ms + WINDOW_MS)
    assert (window.calls, window.ends_at_ms) == (1, at_ms + 2 * WINDOW_MS)
