"""What scraping keeps is bounded in bytes; what it tells is read some at a time; its workers are shared; its jobs end
with their keys.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead.scrape import cache as cache_module
from fairlead.scrape.cache import CachedPage, find_cached, store_cached, sweep_cache
from fairlead.scrape.jobs import pages_run, table
from fairlead.scrape.jobs import runner as runner_module
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.jobs.table import Page, PageSelection, list_pages
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, MIB, kept_bytes
from tests.unit.python.scrape.conftest import Scraping, run_scraping
from tests.unit.python.scrape.test_jobs import crawled, ended

pytestmark = pytest.mark.anyio


class Held:
    """Jobs that last until they are let go, in the order in which they began."""

    def __init__(self) -> None:
        self.owners: list[str] = []
        self.changed = asyncio.Condition()
        self.goes_on = asyncio.Event()

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        held = self

        async def run(self: Any) -> None:
            async with held.changed:
                held.owners.append(self._job.owner)
                held.changed.notify_all()
            await held.goes_on.wait()

        monkeypatch.setattr(pages_run.PagesRun, "run", run)

    async def until(self, owner: str, count: int) -> None:
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: self.owners.count(owner) >= count)


def copy(name: str, owner: str, size: int, at_ms: int) -> CachedPage:
    return CachedPage(name, owner, "u", "u", 200, None, None, at_ms, at_ms + 10_000, "x" * size)


def test_copies_of_pages_are_bounded_in_all_and_for_each_owner(con: Connection) -> None:
    most = 4 * MIB
    for n in range(3):
        store_cached(con, copy(f"a{n}", "a", 600_000, n), most)
    # The owner's share is a quarter: its oldest went.
    assert [find_cached(con, f"a{n}") is not None for n in range(3)] == [False, False, True]
    store_cached(con, copy("large", "a", MIB + 1, 9), most)
    assert find_cached(con, "large") is None
    for n in range(8):
        store_cached(con, copy(f"o{n}", f"o{n}", 700_000, 10 + n), most)
    assert con.execute("SELECT sum(size_bytes) FROM scrape_cache").fetchone()[0] <= most  # type: ignore[index]
    assert find_cached(con, "o7") is not None
    assert find_cached(con, "a2") is None
    sweep_cache(con, 0, 700_000 * cache_module.OWNER_SHARE)
    assert find_cached(con, "o7") is not None


def test_pages_are_read_so_many_bytes_at_a_time(con: Connection) -> None:
    con.execute(
        "INSERT INTO scrape_jobs (id, kind, owner, status, url, options, pages_max, created_at_ms) "
        "VALUES ('j', 'crawl', 'a', 'scraping', 'u', '{}', 9, 0)"
    )
    for n in range(1, 6):
        page = Page(n, 10 - n, "u", "completed", 200, None, None, "ö" * 200, n)
        table.store_step(con, "j", page)

    def numbers(after: int, limit: int, **how: Any) -> list[int]:
        pages = list_pages(con, "j", after, limit, PageSelection(**how))
        return [page.number for page in pages]

    assert numbers(0, 9, max_bytes=1000) == [1, 2]
    assert numbers(2, 9, max_bytes=1) == [3], "one at least"
    assert numbers(0, 3) == [1, 2, 3]
    assert numbers(5, 3) == []
    assert numbers(-1, 2, order="place") == [5, 4]


async def test_a_crawl_ends_where_its_key_may_keep_no_more(
    tmp_path: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_run, "CLAIM_BYTES", 1)
    async with run_scraping(tmp_path / "data", storageOwnerMb=1) as scraping:
        state = scraping.services.state
        await state.database.write(
            lambda con: con.execute(
                "INSERT INTO responses VALUES ('r', 'key:k1', NULL, 'm', '[]', '{}', ?, 0, 0, false)",
                [MIB - 4000],
            )
        )
        answer = await crawled(scraping, site.url("/pages/0"), limit=40)
        assert answer["status"] == "failed"
        assert "storageOwnerMb" in answer["error"]
        assert 0 < answer["progress"]["completed"] < 40
        refused = await scraping.ask(
            "POST", "/api/scrape/async", {"url": "http://127.0.0.1/" + "x" * 1500}, expect=429
        )
        assert "1 MiB of responses, conversations" in refused["error"]
        other = await crawled(scraping.as_owner("another"), site.url("/pages/0"), limit=3)
        assert other["status"] == "completed"
        kept = await state.read(lambda con: kept_bytes(con, DATABASE, "another"))
        assert kept > 0


async def test_a_long_page_of_a_crawl_is_told_in_parts(
    scraping: Scraping, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await crawled(scraping, site.url("/pages/0"), limit=6)
    await scraping.services.state.database.write(
        lambda con: con.execute(
            "UPDATE scrape_pages SET size_bytes = ?", [table.PAGES_MAX_BYTES // 2]
        )
    )
    seen: list[str] = []
    path = f"/api/crawl/{job['id']}?limit=5"
    for _ in range(9):
        told = await scraping.ask("GET", path)
        assert told["count"] == len(told["jobs"]) == 2
        assert all(page["document"]["url"] == page["url"] for page in told["jobs"])
        seen += [page["id"] for page in told["jobs"]]
        if "next" not in told:
            break
        path = told["next"][told["next"].index("/api/") :]
    assert seen == ["1", "2", "3", "4", "5", "6"]


async def test_one_key_never_holds_all_workers(
    scraping: Scraping, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held()
    held.patch(monkeypatch)
    most = runner_module.JOBS_AT_ONCE // 2
    for _ in range(20):
        await scraping.ask("POST", "/api/scrape/async", {"url": "http://127.0.0.1:8080/"})
    await held.until("k1", most)
    another = scraping.as_owner("another")
    await another.ask("POST", "/api/scrape/async", {"url": "http://127.0.0.1:8080/"})
    await held.until("another", 1)
    assert held.owners == ["k1"] * most + ["another"]


@pytest.mark.parametrize(
    "how", ["is_banned = true", "is_active = false", "expires_at_ms = 1", None]
)
async def test_jobs_end_with_their_key(
    scraping: Scraping, monkeypatch: pytest.MonkeyPatch, how: str | None
) -> None:
    held = Held()
    held.patch(monkeypatch)
    begun = await scraping.ask("POST", "/api/crawl", {"url": "http://127.0.0.1:8080/"})
    await held.until("k1", 1)
    state = scraping.services.state
    for slug in ("one",):
        await state.database.write(
            lambda con, slug=slug: con.execute(  # type: ignore[misc]
                "INSERT INTO scrape_endpoints (id, owner, slug, definition, created_at_ms, kind) "
                "VALUES ('e', 'k1', ?, '{}', 0, 'endpoint')",
                [slug],
            )
        )
    change = f"UPDATE keys SET {how} WHERE id = 'k1'" if how else "DELETE FROM keys WHERE id = 'k1'"
    await state.commit(lambda con: con.execute(change).fetchall())
    runner = JobRunner.of(scraping.services)
    runner.wake()

    def look(con: Connection) -> Any:
        return con.execute(
            "SELECT status, error FROM scrape_jobs WHERE id = ?", [begun["id"]]
        ).fetchone()

    async with asyncio.timeout(20):
        while (row := await state.read(look))[0] != "failed":
            await runner.wait_for_change(0.2)
        while runner._tasks:
            await runner.wait_for_change(0.2)
    assert row[1].startswith("The API key that asked for this ")
    await runner.sweep()
    left = await state.read(
        lambda con: con.execute("SELECT count(*) FROM scrape_endpoints").fetchone()
    )
    assert left == ((0,) if how is None else (1,)), "what is saved goes with a deleted key"


async def test_a_job_of_a_revoked_key_is_not_taken_up_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held()
    with monkeypatch.context() as patch:
        held.patch(patch)
        async with run_scraping(tmp_path / "data") as scraping:
            begun = await scraping.ask("POST", "/api/crawl", {"url": "http://127.0.0.1:8080/"})
            await held.until("k1", 1)
            await scraping.services.state.commit(
                lambda con: con.execute(
                    "UPDATE keys SET is_banned = true WHERE id = 'k1'"
                ).fetchall()
            )
    read: list[str] = []

    async def run(self: Any) -> None:
        read.append(self._job.id)

    monkeypatch.setattr(pages_run.PagesRun, "run", run)
    async with run_scraping(tmp_path / "data") as scraping:
        answer = await ended(scraping, f"/api/crawl/{begun['id']}")
    assert (answer["status"], read) == ("failed", [])
    assert "banned" in answer["error"]


async def test_llms_txt_is_written_from_some_pages_at_a_time(
    scraping: Scraping, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"url": site.url("/pages/40"), "maxUrls": 4, "includeFullText": True}
    started = await scraping.ask("POST", "/api/llmstxt", body)
    path = f"/api/llmstxt/{started['id']}"
    whole = await ended(scraping, path)
    assert whole["status"] == "completed"
    read: list[int] = []

    def some(*args: Any) -> list[Page]:
        *where, selection = args
        pages = list_pages(*where, replace(selection, max_bytes=1))
        read.append(len(pages))
        return pages

    monkeypatch.setattr("fairlead.scrape.jobs.llmstxt_router.list_pages", some)
    assert await scraping.ask("GET", path) == whole
    assert read == [1, 1, 1, 1, 0]
    assert orjson.dumps(whole).count(b"Source: ") == 4
