"""Crawls and batches: exact bounds, counts that add up, an end that always comes."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import Any

import pytest

from fairlead.process.extra import install_command
from fairlead.scrape.jobs.events import job_events
from fairlead.scrape.jobs.start import new_job
from fairlead.scrape.jobs.table import (
    FrontierEntry,
    Page,
    finish_entry,
    frontier_of,
    insert_job,
    list_pages,
)
from fairlead.scrape.page.extract import ReadOptions, Source
from fairlead.scrape.requests.fields import RequestBody
from fairlead.scrape.scraper import scraper_of
from tests.support.databases import open_fresh_database
from tests.support.site import PAGES
from tests.unit.python.scrape.conftest import Scraping, run_scraping

pytestmark = pytest.mark.anyio


async def ended(scraping: Scraping, path: str) -> Any:
    """The job's status once it has ended; every look on the way must add up."""
    deadline = time.monotonic() + 30
    while True:
        answer = await scraping.ask("GET", path, limit=100)
        progress = answer["progress"]
        assert progress["total"] == (
            progress["completed"] + progress["failed"] + progress["pending"]
        )
        if "completedAt" in answer:
            assert progress["pending"] == 0
            return answer
        assert time.monotonic() < deadline, answer["progress"]
        # The job runs in this process too: who looks without a pause takes the processor from it.
        await asyncio.sleep(0.02)


async def crawled(scraping: Scraping, url: str, **fields: Any) -> Any:
    """A crawl of the whole host, unless `fields` say otherwise, once it has ended."""
    body = {"url": url, "crawlEntireDomain": True, **fields}
    started = await scraping.ask("POST", "/api/crawl", body)
    assert started["success"] is True
    assert started["status"] == "scraping"
    assert started["url"].endswith(f"/api/crawl/{started['id']}")
    return await ended(scraping, f"/api/crawl/{started['id']}")


def urls_of(answer: Any) -> set[str]:
    return {page["url"] for page in answer["jobs"]}


async def test_a_crawl_reads_each_page_once_and_says_which_failed(scraping, site) -> None:
    answer = await crawled(
        scraping,
        site.url("/"),
        excludePaths=["^/pages/"],
        scrapeOptions={"extractorFormat": "markdown"},
    )
    assert answer["status"] == "completed"
    pages = {page["url"].removeprefix(site.base): page for page in answer["jobs"]}
    # `/hop/0` is a second way to `/article`; pictures and other hosts are not followed.
    assert set(pages) == {
        "/",
        "/article",
        "/empty",
        "/missing",
        "/secret/x",
        "/about",
        "/login",
    }
    assert {name for name, page in pages.items() if page["status"] == "failed"} == {
        "/missing",
        "/secret/x",
        "/about",
        "/login",
    }
    assert pages["/article"]["document"]["content"].startswith("# On harbours")
    assert pages["/empty"]["document"]["content"] == ""
    assert answer["progress"] == {"total": 7, "completed": 3, "failed": 4, "pending": 0}
    errors = await scraping.ask("GET", f"/api/crawl/{answer['id']}/errors")
    assert errors["count"] == 4
    assert {each["code"] for each in errors["errors"]} == {"status", "robots"}
    assert "next" not in answer


async def test_bounds_hold_exactly(scraping, site) -> None:
    start = site.url("/pages/0")
    assert len((await crawled(scraping, start))["jobs"]) == PAGES
    for fields, count in [
        ({"limit": 7}, 7),
        ({"maxUrls": 9}, 9),
        ({"limit": 12, "maxUrls": 5}, 5),
        ({"limit": 1}, 1),
        ({"maxDepth": 0}, 1),
        ({"maxDepth": 2}, 7),
        ({"maxDiscoveryDepth": 1, "maxDepth": 4}, 3),
    ]:
        answer = await crawled(scraping, start, **fields)
        assert (len(answer["jobs"]), answer["progress"]["total"]) == (count, count), fields
    endless = await crawled(scraping, site.url("/trap/0"), limit=25, maxDepth=10)
    assert len(endless["jobs"]) <= 25


async def test_patterns_choose_and_exclusion_wins(scraping, site) -> None:
    answer = await crawled(
        scraping, site.url("/pages/0"), includePaths=["/pages/[0-9]$"], excludePatterns=["/2$"]
    )
    found = {url.rsplit("/", 1)[1] for url in urls_of(answer)}
    assert found == {"0", "1", "3", "4", "7", "8", "9"}


async def test_a_pattern_of_another_engine_is_refused_and_a_slow_one_is_not_slow(
    scraping, site
) -> None:
    for pattern in ("(", "(?=x)", r"(a)\1"):
        body = {"url": site.url("/"), "includePatterns": [pattern]}
        answer = await scraping.ask("POST", "/api/crawl", body, expect=400)
        assert "regular expression" in answer["error"]
    started = time.monotonic()
    await crawled(scraping, site.url("/pages/0"), limit=3, excludePatterns=["(a+)+$", "(.*)*x$"])
    assert time.monotonic() - started < 10


async def test_the_status_is_paged_by_next(scraping, site) -> None:
    answer = await crawled(scraping, site.url("/pages/0"))
    seen: list[str] = []
    path = f"/api/crawl/{answer['id']}?limit=25"
    while path:
        page = await scraping.ask("GET", path)
        seen += [each["url"] for each in page["jobs"]]
        path = page.get("next", "").partition("127.0.0.1")[2].partition("/")[2]
        path = f"/{path}" if path else ""
    assert len(seen) == len(set(seen)) == PAGES


async def test_a_start_page_that_is_not_read_fails_the_crawl(scraping, site) -> None:
    answer = await crawled(scraping, site.url("/missing"))
    assert (answer["status"], answer["error"]) == ("failed", "The page answered 404.")


async def test_a_cancelled_crawl_stays_cancelled(scraping, site) -> None:
    started = await scraping.ask(
        "POST",
        "/api/crawl",
        {"url": site.url("/slow/1?s=0.3"), "limit": 30, "crawlEntireDomain": True},
    )
    path = f"/api/crawl/{started['id']}"
    active = await scraping.ask("GET", "/api/crawl/active")
    assert [crawl["id"] for crawl in active["crawls"]] == [started["id"]]
    assert (await scraping.ask("DELETE", path))["status"] == "cancelled"
    before = await ended(scraping, path)
    assert before["status"] == "cancelled"
    assert (await scraping.ask("DELETE", path))["status"] == "cancelled"
    assert (await scraping.ask("GET", path))["progress"] == before["progress"]
    assert (await scraping.ask("GET", "/api/crawl/active"))["count"] == 0


async def test_a_crawl_may_read_only_what_the_sitemap_names(scraping, site) -> None:
    answer = await crawled(
        scraping,
        site.url("/pages/50"),
        sitemapsOnly=True,
        limit=50,
        includePaths=[rf"^{re.escape(site.base)}/(pages|article)"],
        regexOnFullURL=True,
    )
    assert urls_of(answer) == {site.url(path) for path in ("/pages/50", "/article", "/pages/59")}


async def test_a_stream_that_cannot_go_on_says_so(scraping) -> None:
    events = [event async for event in job_events(scraping.services, "batch", "none", "k1", 0)]
    assert [event.split(b"\n")[0] for event in events] == [b"event: open", b"event: error"]
    assert b'"batchId":"none"' in events[0]
    assert b'"code":"not_found"' in events[1]


async def test_jobs_belong_to_their_key(scraping, site) -> None:
    answer = await crawled(scraping, site.url("/empty"))
    stranger = scraping.as_owner("stranger")
    for method in ("GET", "DELETE"):
        refused = await stranger.ask(method, f"/api/crawl/{answer['id']}", expect=404)
        assert refused == {"success": False, "error": "Crawl not found"}
    assert (await stranger.ask("GET", "/api/crawl"))["count"] == 0


async def test_progress_is_told_as_it_happens(scraping, site) -> None:
    body = {
        "url": site.url("/pages/0"),
        "crawlEntireDomain": True,
        "limit": 20,
        "scrapeOptions": {"extractorFormat": "markdown"},
    }
    started = await scraping.ask("POST", "/api/crawl", body)
    principal = {"kind": "key", "id": scraping.owner, "scopes": []}
    answer = await scraping.client.get(
        f"/api/crawl/{started['id']}/stream",
        headers={"x-fairlead-principal": json.dumps(principal)},
        timeout=30,
    )
    events = [
        (lines["event"], json.loads(lines["data"]))
        for block in answer.text.split("\n\n")
        if (lines := dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)).get(
            "event"
        )
    ]
    assert events[0][0] == "open"
    pages = [data for name, data in events if name == "page"]
    assert len(pages) == 20
    assert (pages[0]["title"], pages[0]["markdown"]) == ("Page 0", pages[0]["document"]["content"])
    assert pages[0]["metadata"]["status"] == 200
    assert events[-1] == (
        "done",
        {"status": "completed", "total": 20, "success": 20, "failed": 0, "done": True},
    )


async def test_a_background_scrape_has_its_result_in_its_job(scraping, site) -> None:
    started = await scraping.ask(
        "POST",
        "/api/scrape/async",
        {"url": site.url("/article"), "options": {"extractorFormat": "text"}},
    )
    assert started["status"] == "pending"
    path = f"/api/scrape/job/{started['id']}"
    assert started["url"].endswith(path)
    deadline = time.monotonic() + 10
    while (answer := await scraping.ask("GET", path))["status"] not in {"completed", "failed"}:
        assert time.monotonic() < deadline
    assert answer["success"] is True
    assert "A harbour silts up" in answer["result"]["content"]
    unknown = await scraping.ask("GET", "/api/scrape/job/none", expect=404)
    assert unknown == {"success": False, "error": "Job not found"}


async def test_a_batch_reads_each_address_once_and_ends_with_what_failed(scraping, site) -> None:
    urls = [site.url(path) for path in ("/article", "/missing", "/article#x", "/empty")]
    started = await scraping.ask("POST", "/api/batch/scrape", {"urls": urls})
    assert started["totalUrls"] == 3
    answer = await ended(scraping, f"/api/batch/scrape/{started['id']}")
    assert answer["status"] == "completed_with_errors"
    assert answer["progress"] == {"total": 3, "completed": 2, "failed": 1, "pending": 0}


async def test_a_crawl_may_begin_with_the_sitemap(scraping, site) -> None:
    answer = await crawled(
        scraping,
        site.url("/pages/50"),
        skipSitemaps=False,
        maxDepth=1,
        limit=50,
        excludePaths=["^/pages/2", "^/hop"],
    )
    assert {site.url("/article"), site.url("/pages/59")} <= urls_of(answer)


async def test_a_job_goes_on_after_a_restart_from_the_page_it_reached(tmp_path, site) -> None:
    async with run_scraping(tmp_path / "data") as first:
        started = await first.ask(
            "POST",
            "/api/crawl",
            {
                "url": site.url("/slow/1?s=0.21"),
                "crawlEntireDomain": True,
                "limit": 31,
                "crawlOptions": {"maxConcurrentCrawlers": 2},
            },
        )
        path = f"/api/crawl/{started['id']}"
        deadline = time.monotonic() + 20
        while (before := await first.ask("GET", path, limit=100))["progress"]["completed"] < 5:
            assert time.monotonic() < deadline
    async with run_scraping(tmp_path / "data") as second:
        after = await ended(second, path)
    kept = [page["url"] for page in before["jobs"]]
    assert [page["url"] for page in after["jobs"]][: len(kept)] == kept
    assert len(urls_of(after)) == len(after["jobs"]) == 30
    asked = site.asked()
    again = sum(asked[url.removeprefix(site.base)] - 1 for url in urls_of(after))
    assert again <= 2, "only what was under way is fetched twice"


async def test_a_job_ends_where_there_is_no_browser_for_it(scraping, site, monkeypatch) -> None:
    monkeypatch.setattr("fairlead.scrape.browser.process.PROGRAMS", ("no-such-browser",))
    options = {"useBrowser": True}
    answer = await crawled(scraping, site.url("/article"), scrapeOptions=options)
    assert answer["status"] == "failed"
    assert install_command("browser") in answer["error"] or "apt-get install" in answer["error"]
    refused = await scraping.scrape(site.url("/article"), expect=400, **options)
    assert "install" in refused["error"]


async def test_a_page_that_breaks_the_reader_is_one_failed_page(
    scraping, site, monkeypatch
) -> None:
    pool = scraper_of(scraping.services).pool
    real = pool.read

    async def broken(source: Source, want: ReadOptions, owner: str = "") -> Any:
        if source.url.endswith("/pages/2"):
            raise RuntimeError("a defect")
        return await real(source, want, owner)

    monkeypatch.setattr(pool, "read", broken)
    answer = await crawled(scraping, site.url("/pages/0"), maxDepth=1)
    assert answer["status"] == "completed"
    assert answer["progress"] == {"total": 3, "completed": 2, "failed": 1, "pending": 0}


async def test_ended_jobs_expire(scraping, site) -> None:
    answer = await crawled(scraping, site.url("/empty"))
    assert answer["expiresAt"] > answer["completedAt"]
    from fairlead.scrape.jobs.table import sweep_jobs

    await scraping.services.state.database.write(lambda con: sweep_jobs(con, 2**60))
    await scraping.ask("GET", f"/api/crawl/{answer['id']}", expect=404)
    left = await scraping.services.state.read(
        lambda con: con.execute("SELECT count(*) FROM scrape_pages").fetchone()
    )
    assert left == (0,)


async def test_an_estimate_is_a_bound(scraping, site) -> None:
    answer = await scraping.ask(
        "POST", "/api/crawl/estimate", {"url": site.url("/"), "limit": 50, "maxDepth": 2}
    )
    assert answer["estimate"]["maxPages"] == 50
    assert answer["estimate"]["renderMode"] == "http"


async def test_an_estimate_reads_the_depth_and_the_site(scraping, site) -> None:
    """No page but the start at depth 0, its links at 1, the site's addresses beyond; and what was looked at."""

    async def estimate(**ask: Any) -> Any:
        body = {"url": site.url("/"), "limit": 500, **ask}
        return (await scraping.ask("POST", "/api/crawl/estimate", body))["estimate"]

    start = await estimate(maxDepth=0)
    assert (start["maxPages"], start["estimatedPages"]) == (1, 1)
    assert start["sampled"]["startPageLinks"] is None
    near = await estimate(maxDepth=1)
    links = near["sampled"]["startPageLinks"]
    assert 0 < links < 499
    assert near["maxPages"] == near["estimatedPages"] == 1 + links
    assert near["sampled"]["sitemapAddresses"] is None
    far = await estimate(maxDepth=3)
    assert (far["maxPages"], far["maxDepth"]) == (500, 3)
    assert far["sampled"]["sitemapAddresses"] is not None
    assert far["estimatedPages"] == min(500, far["sampled"]["knownAddresses"])
    assert (await estimate(maxDepth=3, limit=2))["estimatedPages"] == 2

    mapped = await scraping.ask("POST", "/api/map", {"url": site.url("/")})
    kept = (await estimate(maxDepth=3))["sampled"]
    assert kept["sitemapAddresses"] is None
    assert kept["keptMapAddresses"] >= mapped["data"]["total"] - 1

    missing = (await estimate(maxDepth=2, url=site.url("/no-such-page")))["sampled"]
    assert missing["startPageLinks"] is None
    assert missing["failures"]


async def test_scrape_options_of_a_site_are_free_form(scraping, site) -> None:
    """Unknown members pass, those of a scrape are checked, and bounds above ours are lowered."""
    for path in ("/api/crawl", "/api/crawl/estimate"):
        body = {"url": site.url("/article"), "limit": 1, "maxDepth": 0}
        free = {"onlyMainContent": True, "proxyCountry": {"a": [1]}, "waitFor": 5}
        await scraping.ask("POST", path, {**body, "scrapeOptions": free})
        for wrong in ({"cacheTtl": 0}, {"waitForTimeout": "x"}, {"actions": [{"type": "fly"}]}):
            await scraping.ask("POST", path, {**body, "scrapeOptions": wrong}, expect=400)
    # A member that no crawl has is a mistake of the caller's, and is named.
    told = await scraping.ask(
        "POST", "/api/crawl", {"url": site.url("/"), "politeness": 1}, expect=400
    )
    assert "politeness" in told["error"]
    await scraping.ask(
        "POST", "/api/scrape", {"url": site.url("/article"), "options": {"cacheTtl": 10**9}}
    )


async def test_a_map_lists_the_addresses_of_a_site(scraping, site) -> None:
    answer = await scraping.ask("POST", "/api/map", {"url": site.url("/")})
    links = answer["data"]["links"]
    assert {site.url("/article"), site.url("/pages/59"), site.url("/empty")} <= set(links)
    assert len(links) == len(set(links)) == answer["data"]["total"]
    assert answer["metadata"]["partial"] is False
    few = await scraping.ask("POST", "/api/map", {"url": site.url("/"), "maxUrls": 3})
    assert few["data"]["total"] == 3
    found = await scraping.ask("POST", "/api/map", {"url": site.url("/"), "searchQuery": "artic"})
    assert found["data"]["links"] == [site.url("/article")]


async def test_an_address_is_settled_once(tmp_path) -> None:
    """A write that came through after its deadline, and the same address read again."""
    database = await asyncio.to_thread(open_fresh_database, tmp_path, "state")
    job = new_job("crawl", "k1", "http://a.example/", RequestBody(), 5)
    await database.write(lambda con: insert_job(con, job, [FrontierEntry(0, 0, job.url)]))
    for number, place, settled in ((1, 0, "stored"), (2, 0, "known"), (3, 7, "known")):
        page = Page(number, place, job.url, "completed", 200, None, None, "{}", 1)
        found = [FrontierEntry(place + 1, 1, "http://a.example/b")]
        assert settled == await database.write(
            lambda con, page=page, found=found: finish_entry(con, job.id, page.place, page, found)
        )
    pages, frontier = await database.read(
        lambda con: (list_pages(con, job.id, 0, 10), frontier_of(con, job.id))
    )
    assert [page.number for page in pages] == [1]
    assert [place.place for place, _ in frontier] == [0, 1]
    await database.close()
