"""Regular expressions of callers: compiled with a bound, matched in a process that may be killed, never in
control's loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fairlead.errors import InvalidRequest
from fairlead.scrape.page.patterns import AddressPatterns
from fairlead.scrape.page.pool import Pool, ReadFailed
from fairlead.scrape.scraper import scraper_of
from tests.unit.python.scrape.conftest import Scraping
from tests.unit.python.scrape.test_jobs import crawled, ended

pytestmark = pytest.mark.anyio

# What the event loop may be silent for on a machine that does much else; these patterns took it 4 s and more.
SILENCE_MAX_S = 2.0
URLS = [f"https://site.example/{part}?page={n}" for part in ("blog/a", "shop/b") for n in range(3)]


@contextmanager
def loop_answers() -> Iterator[None]:
    """Fails where the event loop did nothing else for longer than `SILENCE_MAX_S` inside."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)

    watching = asyncio.ensure_future(watch())
    try:
        yield
    finally:
        watching.cancel()
    assert longest < SILENCE_MAX_S


@pytest.fixture
async def pool() -> Any:
    pool = Pool()
    yield pool
    await pool.close()


async def test_patterns_choose_in_a_process_of_the_pool(pool: Pool) -> None:
    for patterns, wanted in (
        (AddressPatterns(include_paths=("^/blog/",)), URLS[:3]),
        (AddressPatterns(include=("page=[12]$",), exclude_paths=("^/shop",)), URLS[1:3]),
        (AddressPatterns(words=("SHOP", "page=0")), URLS[3:4]),
        (AddressPatterns(exclude=("x{3}",)), URLS),
    ):
        assert await pool.choose(patterns, URLS) == wanted


async def test_a_pattern_that_grows_is_refused_with_its_name(pool: Pool) -> None:
    for pattern, word in (
        (r"\w{200}", "too large"),
        (r"(?:a{99}){99}{99}", "too large"),
        ("(", "not a regular expression"),
        ("(?=x)", "not a regular expression"),
    ):
        with pytest.raises(InvalidRequest, match=word) as refused:
            await pool.choose(AddressPatterns(include=("fine", pattern)), URLS)
        assert pattern[:60] in str(refused.value)
    many = AddressPatterns(exclude=tuple(rf"\w{{8}}{number}" for number in range(25)))
    with pytest.raises(InvalidRequest, match="together"):
        await pool.choose(many, URLS)


async def test_patterns_that_take_too_long_end_with_their_process() -> None:
    pool = Pool(read_deadline_s=0.5)
    slow = AddressPatterns(include=tuple(rf"(?:a|\w){{6}}!{number}" for number in range(8)))
    long_urls = [f"https://site.example/{'aé' * 900}{n}" for n in range(3_000)]
    try:
        begun = time.monotonic()
        with loop_answers(), pytest.raises(ReadFailed) as failed:
            await pool.choose(slow, long_urls)
        assert failed.value.code == "timeout"
        assert time.monotonic() - begun < 30
        assert pool.process_ids == []
        # The next question finds another process.
        pool._read_deadline_s = 15.0
        assert await pool.choose(AddressPatterns(exclude=("site",)), URLS[:1]) == []
    finally:
        await pool.close()


async def test_control_answers_while_a_map_is_made(scraping: Scraping, site: Any) -> None:
    body = {
        "url": site.url("/"),
        "includePatterns": [rf"\w{{195}}x{number}" for number in range(25)],
        "excludePatterns": [rf"\w{{195}}y{number}" for number in range(25)],
    }
    with loop_answers():
        refused = await scraping.ask("POST", "/api/map", body, expect=400)
        assert "too large" in refused["error"]
        words = {"url": site.url("/"), "searchQuery": " ".join("e" for _ in range(250))}
        await scraping.ask("POST", "/api/map", words)


async def test_control_answers_while_a_crawl_matches(scraping: Scraping, site: Any) -> None:
    start = site.url("/pages/0")
    for patterns in ([rf"(?:a|\w){{180}}!{number}" for number in range(8)], [r"\w{200}"]):
        for name in ("includePaths", "excludePaths", "includePatterns", "excludePatterns"):
            with loop_answers():
                await scraping.ask("POST", "/api/crawl", {"url": start, name: patterns}, expect=400)
    with loop_answers():
        answer = await crawled(
            scraping, start, limit=3, excludePatterns=[r"(?:a|\w){6}!", "(.*)*x$"]
        )
    assert answer["status"] == "completed"


async def test_a_job_whose_patterns_take_too_long_fails(
    scraping: Scraping, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of the pool is stopped where it matches, as one that computes for ever."""
    scraper = scraper_of(scraping.services)
    choose = scraper.pool.choose

    async def too_late(patterns: AddressPatterns, addresses: Any, owner: str = "") -> list[str]:
        if not addresses:
            return await choose(patterns, addresses, owner)
        monkeypatch.setattr(scraper.pool, "_read_deadline_s", 0.0)
        try:
            return await choose(patterns, addresses, owner)
        finally:
            monkeypatch.setattr(scraper.pool, "_read_deadline_s", 15.0)

    monkeypatch.setattr(scraper.pool, "choose", too_late)
    body = {
        "url": site.url("/pages/0"),
        "crawlEntireDomain": True,
        "includePaths": ["/pages/"],
    }
    started = await scraping.ask("POST", "/api/crawl", body)
    answer = await ended(scraping, f"/api/crawl/{started['id']}")
    assert (answer["status"], "patterns took too long" in answer["error"]) == ("failed", True)
