"""Options of a crawl: how far it goes, in which order, how long, and what it answers about its bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.scrape.jobs.frontier import Frontier
from fairlead.scrape.jobs.table import FrontierEntry
from fairlead.scrape.requests.jobs import CrawlRequest
from tests.support.site import Site
from tests.unit.python.scrape.conftest import Scraping, run_scraping
from tests.unit.python.scrape.test_jobs import ended

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def other() -> Iterator[Site]:
    """A site at another origin."""
    with Site() as running:
        yield running


async def paths(scraping: Scraping, site: Site, start: str, **fields: Any) -> list[str]:
    """What a crawl read, in order, without the site's address."""
    body = {"url": site.url(start), "crawlOptions": {"maxConcurrentCrawlers": 1}, **fields}
    started = await scraping.ask("POST", "/api/crawl", body)
    view = await ended(scraping, f"/api/crawl/{started['id']}")
    assert view["status"] == "completed"
    return [page["url"].removeprefix(site.base) for page in view["jobs"]]


DOCS = {
    "/tree/docs",
    "/tree/docs/a",
    "/tree/docs/a/deep",
    "/tree/docs/a/deep/end",
    "/tree/docs/b",
    "/tree/docs/b?page=2",
    "/tree/docs/b?page=3",
    "/tree/docs/harbour-depth",
}


async def test_a_crawl_stays_below_the_path_of_its_start(scraping, site) -> None:
    assert set(await paths(scraping, site, "/tree/docs")) == DOCS
    # A file stands for its folder.
    assert set(await paths(scraping, site, "/tree/docs/index.html", maxDepth=1)) == {
        "/tree/docs/index.html",
        "/tree/docs/a",
    }
    whole = DOCS | {"/tree/blog", "/tree/docsearch", "/tree/docs/c"}
    for name in ("crawlEntireDomain", "allowBackwardCrawling"):
        assert set(await paths(scraping, site, "/tree/docs", **{name: True})) == whole


async def test_addresses_that_differ_in_their_query_can_be_one_page(scraping, site) -> None:
    read = await paths(scraping, site, "/tree/docs", ignoreQueryParameters=True)
    assert sorted(read) == sorted(DOCS - {"/tree/docs/b?page=2", "/tree/docs/b?page=3"})


async def test_the_strategy_is_the_order_of_reading(scraping, site) -> None:
    nearest = await paths(scraping, site, "/tree/docs")
    assert nearest[:3] == ["/tree/docs", "/tree/docs/a", "/tree/docs/b"]
    deepest = await paths(scraping, site, "/tree/docs", strategy="dfs")
    assert deepest[:4] == [
        "/tree/docs",
        "/tree/docs/a",
        "/tree/docs/a/deep",
        "/tree/docs/a/deep/end",
    ]
    best = await paths(
        scraping, site, "/tree/docs", strategy="best_first", keywords=["/B", "Harbour"]
    )
    assert best[:4] == [
        "/tree/docs",
        "/tree/docs/b",
        "/tree/docs/b?page=3",
        "/tree/docs/harbour-depth",
    ]
    assert set(nearest) == set(deepest) == set(best) == DOCS
    refused = await scraping.ask(
        "POST", "/api/crawl", {"url": site.url("/"), "strategy": "best_first"}, expect=400
    )
    assert "keywords" in refused["error"]


async def test_pages_of_other_hosts_are_read_and_not_followed(scraping, site, other) -> None:
    start = f"/tree/docs?to={other.url('/tree/docs')}"
    inside = await paths(scraping, site, start, maxDepth=2)
    assert not [path for path in inside if path.startswith("http")]
    read = await paths(scraping, site, start, maxDepth=2, allowExternalContentLinks=True)
    assert [path for path in read if path.startswith("http")] == [other.url("/tree/docs")]


async def test_a_crawl_can_start_from_a_map_of_the_site(scraping, site) -> None:
    # No link leads there from the start: the sitemap, which a map reads, names it.
    read = await paths(
        scraping, site, "/tree/docsearch", crawlEntireDomain=True, useMapDiscovery=True, limit=40
    )
    assert "/pages/59" in read


async def test_a_crawl_ends_when_its_time_is_over(scraping, site) -> None:
    begun_s = time.monotonic()
    body = {
        "url": site.url("/slow/1?s=0.4"),
        "crawlEntireDomain": True,
        "limit": 30,
        "timeoutMs": 1500,
        "crawlOptions": {"maxConcurrentCrawlers": 1},
    }
    started = await scraping.ask("POST", "/api/crawl", body)
    view = await ended(scraping, f"/api/crawl/{started['id']}")
    assert time.monotonic() - begun_s < 10
    assert view["status"] == "completed"
    assert "timeoutMs was over" in view["error"]
    assert 1 <= view["progress"]["completed"] < 10


async def test_pages_have_a_pause_between_them(scraping, site) -> None:
    begun_s = time.monotonic()
    await paths(scraping, site, "/tree/docs", limit=3, delay=0.5)
    assert time.monotonic() - begun_s >= 1.0
    request = CrawlRequest.model_validate({"url": site.url("/"), "delay": 1})
    assert request.width == 1


async def test_robots_txt_is_ignored_only_where_the_operator_allows_it(tmp_path, site) -> None:
    body = {"url": site.url("/secret/tree"), "ignoreRobotsTxt": True}
    async with run_scraping(tmp_path / "data") as scraping:
        refused = await scraping.ask("POST", "/api/crawl", body, expect=403)
        assert "scrapeMayIgnoreRobots" in refused["error"]
        await scraping.services.state.read(lambda con: con.execute("SELECT 1"))
    async with run_scraping(tmp_path / "data", scrapeMayIgnoreRobots=True) as scraping:
        started = await scraping.ask("POST", "/api/crawl", body)
        view = await ended(scraping, f"/api/crawl/{started['id']}")
        assert view["progress"]["completed"] == 2
        obedient = await scraping.ask("POST", "/api/crawl", {"url": body["url"]})
        view = await ended(scraping, f"/api/crawl/{obedient['id']}")
        assert (view["status"], view["progress"]["completed"]) == ("failed", 0)


async def test_values_above_a_bound_are_lowered_and_reported(scraping, site) -> None:
    page = site.url("/tree/docs/c")
    crawl = {
        "url": page,
        "limit": 50_000,
        "maxDepth": 99,
        "maxRetries": 99,
        "delay": 900,
        "crawlOptions": {"maxConcurrentCrawlers": 99},
        "scrapeOptions": {"cacheTtl": 10**9},
    }
    started = await scraping.ask("POST", "/api/crawl", crawl)
    assert {each["path"]: (each["requested"], each["applied"]) for each in started["lowered"]} == {
        "limit": (50_000, 10_000),
        "maxDepth": (99, 10),
        "maxRetries": (99, 10),
        "delay": (900, 60),
        "crawlOptions.maxConcurrentCrawlers": (99, 20),
        "scrapeOptions.cacheTtl": (10**9, 30 * 86_400),
    }
    await scraping.ask("DELETE", f"/api/crawl/{started['id']}")
    for path, body, name in [
        ("/api/batch/scrape", {"urls": [page], "concurrency": 99}, "concurrency"),
        ("/api/map", {"url": page, "maxUrls": 10**6}, "maxUrls"),
        ("/api/llmstxt", {"url": page, "maxUrls": 10**6}, "maxUrls"),
        ("/api/scrape", {"url": page, "options": {"maxAge": 10**12}}, "options.maxAge"),
        ("/api/scrape/async", {"url": page, "options": {"cacheTtl": 10**9}}, "options.cacheTtl"),
        ("/api/crawl/estimate", {"url": page, "limit": 10**6}, "limit"),
    ]:
        answer = await scraping.ask("POST", path, body)
        assert [each["path"] for each in answer["lowered"]] == [name]
    assert "lowered" not in await scraping.ask("POST", "/api/map", {"url": page})


async def test_every_fault_of_a_body_is_named(scraping, site) -> None:
    body = {"url": 5, "limit": 0, "scrapeOptions": {"cacheTtl": "x"}, "unknown": 1}
    refused = await scraping.ask("POST", "/api/crawl", body, expect=400)
    assert refused["error"] == refused["details"][0]["message"]
    assert {each["path"] for each in refused["details"]} == {
        "url",
        "limit",
        "scrapeOptions.cacheTtl",
        "unknown",
    }
    assert all(each["message"].startswith(each["path"]) for each in refused["details"])
    many = {"url": site.url("/"), **{f"f{n}": 1 for n in range(30)}}
    refused = await scraping.ask("POST", "/api/crawl", many, expect=400)
    assert len(refused["details"]) == 20


def test_the_order_is_the_same_after_a_restart() -> None:
    request = CrawlRequest.model_validate(
        {"url": "http://x/", "strategy": "best_first", "keywords": ["b"]}
    )
    frontier = Frontier(request, "http://x/")
    for place, url in enumerate(["http://x/a", "http://x/b", "http://x/c", "http://x/bb"]):
        frontier.add_stored(FrontierEntry(place, 1, url), pending=True)
    order = []
    while entry := frontier.pop():
        order.append(entry.place)
    assert order == [1, 3, 0, 2]
