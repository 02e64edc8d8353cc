"""The webhook of a crawl or a batch: what it is told, how often, and when it is forgotten."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

import pytest
import standardwebhooks

from fairlead.events import CATALOGUE
from fairlead.moment import now_ms
from fairlead.scrape.jobs.completion import conclude
from fairlead.scrape.jobs.listener import (
    insert_listener,
    notify_ended,
    notify_page,
    notify_started,
    sweep_listeners,
)
from fairlead.scrape.jobs.start import new_job
from fairlead.scrape.jobs.table import Job, JobEnd, Page, Progress, find_job, insert_job, sweep_jobs
from fairlead.scrape.requests.fields import RequestBody
from fairlead.store.state import State
from tests.support.listener import Listener, Received
from tests.unit.python.scrape.conftest import run_scraping

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
TABLES = ("webhook_endpoints", "webhook_secrets", "webhook_deliveries", "webhook_attempts")


async def told(listener: Listener, last: str) -> list[Received]:
    """What the listener got, once it was told this."""
    deadline = time.monotonic() + 20
    while True:
        got = listener.received()
        if any(one.event["type"] == last for one in got):
            # The last event may overtake others: they were all written before it.
            wanted = {one.event["data"].get("total") for one in got} - {None}
            if len({one.message_id for one in got}) >= max(wanted) + 2:
                return got
        assert time.monotonic() < deadline, [one.event for one in got]
        await asyncio.sleep(0.02)


def of_type(got: list[Received], name: str) -> list[dict[str, Any]]:
    return [one.event["data"] for one in got if one.event["type"] == name]


async def counted(state: State, table: str) -> int:
    row = await state.read(lambda con: con.execute(f"SELECT count(*) FROM {table}").fetchone())
    assert row is not None
    return int(row[0])


async def stored_job(state: State) -> Job:
    """A crawl with a listener."""
    job = new_job("crawl", "k1", "http://a.example/", RequestBody(), 5)

    def work(con: Any) -> None:
        insert_job(con, job, [])
        insert_listener(con, state.sealer, job, "http://hook.example/", SECRET)

    await state.record(work)
    return job


async def test_a_crawl_tells_its_start_its_pages_and_its_end(scraping, site, listener) -> None:
    url = f"{listener.url}/ok"
    started = await scraping.ask(
        "POST",
        "/api/crawl",
        {
            "url": site.url("/"),
            "webhook": url,
            "excludePaths": ["^/pages", "^/hop", "^/about", "^/login"],
        },
    )
    secret = started["webhookSecret"]
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) >= 24
    got = await told(listener, "crawl.completed")
    for one in got:
        standardwebhooks.Webhook(secret).verify(one.body, one.headers)
        assert list(one.event) == ["type", "timestamp", "data"]
        members = CATALOGUE["crawl"][one.event["type"]].data
        assert set(one.event["data"]) <= set(members)
        assert one.event["data"]["crawlId"] == started["id"]
    assert of_type(got, "crawl.started") == [
        {"crawlId": started["id"], "url": site.url("/"), "status": "scraping"}
    ]
    pages = {page["url"].removeprefix(site.base): page for page in of_type(got, "crawl.page")}
    assert set(pages) == {"/", "/article", "/empty", "/missing", "/secret/x"}
    assert pages["/article"] == {
        "crawlId": started["id"],
        "url": site.url("/article"),
        "status": "completed",
        "title": "On harbours",
        "statusCode": 200,
    }
    assert pages["/missing"] == {
        "crawlId": started["id"],
        "url": site.url("/missing"),
        "status": "failed",
        "error": "The page answered 404.",
    }
    assert of_type(got, "crawl.completed") == [
        {
            "crawlId": started["id"],
            "url": site.url("/"),
            "status": "completed",
            "total": 5,
            "completed": 3,
            "failed": 2,
        }
    ]
    assert len({one.message_id for one in got}) == len(got) == 7
    shown = await scraping.ask("GET", f"/api/crawl/{started['id']}")
    assert "webhookSecret" not in shown
    assert secret not in json.dumps(shown)


async def test_a_batch_tells_in_names_of_its_own(scraping, site, listener) -> None:
    started = await scraping.ask(
        "POST",
        "/api/batch/scrape",
        {"urls": [site.url("/article"), site.url("/missing")], "webhook": f"{listener.url}/ok"},
    )
    got = await told(listener, "batch_scrape.completed")
    (ended,) = of_type(got, "batch_scrape.completed")
    assert ended == {
        "batchId": started["id"],
        "url": site.url("/article"),
        "status": "completed_with_errors",
        "total": 2,
        "completed": 1,
        "failed": 1,
    }
    for one in got:
        standardwebhooks.Webhook(started["webhookSecret"]).verify(one.body, one.headers)
        assert set(one.event["data"]) <= set(CATALOGUE["crawl"][one.event["type"]].data)


async def test_a_crawl_that_comes_to_nothing_tells_why(scraping, site, listener) -> None:
    body = {"url": site.url("/missing"), "webhook": f"{listener.url}/ok"}
    started = await scraping.ask("POST", "/api/crawl", body)
    (failed,) = of_type(await told(listener, "crawl.failed"), "crawl.failed")
    assert failed == {
        "crawlId": started["id"],
        "url": site.url("/missing"),
        "status": "failed",
        "total": 1,
        "completed": 0,
        "failed": 1,
        "error": "The page answered 404.",
    }


async def test_without_a_webhook_nothing_is_kept_and_no_secret_shown(scraping, site) -> None:
    started = await scraping.ask("POST", "/api/crawl", {"url": site.url("/empty")})
    assert "webhookSecret" not in started
    while (await scraping.ask("GET", f"/api/crawl/{started['id']}"))["status"] == "scraping":
        await asyncio.sleep(0.02)
    for table in (*TABLES, "webhook_messages"):
        assert await counted(scraping.services.state, table) == 0, table


async def test_what_is_written_twice_is_told_once(state) -> None:
    job = await stored_job(state)
    page = Page(1, 4, job.url, "completed", 200, None, None, "{}", now_ms())
    again = Page(2, 4, job.url, "completed", 200, None, None, "{}", now_ms())

    def work(con: Any) -> None:
        notify_started(con, job)
        notify_page(con, job, page, "a title")
        notify_page(con, job, again, "a title")
        notify_ended(con, job, JobEnd("completed", None, now_ms(), now_ms()), Progress(1, 0, 0))

    await state.record(work)
    await state.record(work)
    assert await counted(state, "webhook_messages") == 3
    assert await counted(state, "webhook_deliveries") == 3


async def test_a_title_without_end_does_not_end_the_crawl(state) -> None:
    job = await stored_job(state)
    page = Page(1, 0, job.url, "completed", 200, None, None, "{}", now_ms())
    await state.record(lambda con: notify_page(con, job, page, "x" * 1_000_000))
    row = await state.read(lambda con: con.execute("SELECT body FROM webhook_messages").fetchone())
    assert json.loads(row[0])["data"]["title"] == "x" * 500


async def test_what_was_undone_is_not_told(state) -> None:
    job = await stored_job(state)

    def undone(con: Any) -> None:
        assert conclude(con, job, "cancelled", None)
        raise LookupError

    with pytest.raises(LookupError):
        await state.record(undone)
    assert await counted(state, "webhook_messages") == 0
    assert (await state.read(lambda con: find_job(con, job.id, "crawl", "k1"))).is_active


async def test_a_listener_goes_with_its_job_once_nothing_waits(state) -> None:
    told_of_all, waits, goes_on = [await stored_job(state) for _ in range(3)]

    def end(con: Any) -> None:
        for job in (told_of_all, waits):
            conclude(con, job, "cancelled", None)
        con.execute(
            "UPDATE webhook_deliveries SET state = 'delivered' WHERE endpoint_id IN "
            "(SELECT id FROM webhook_endpoints WHERE owner = ?)",
            [told_of_all.id],
        )
        con.execute(
            "INSERT INTO webhook_attempts SELECT id, endpoint_id, 1, 1, 1, 200, NULL "
            "FROM webhook_deliveries"
        )

    late_ms = now_ms() + 25 * 3_600_000

    def expire(con: Any) -> set[str]:
        sweep_jobs(con, late_ms)
        sweep_listeners(con)
        return {row[0] for row in con.execute("SELECT owner FROM webhook_endpoints").fetchall()}

    await state.record(end)
    assert await state.record(expire) == {waits.id, goes_on.id}
    assert [await counted(state, table) for table in TABLES] == [2, 2, 1, 1]
    await state.record(lambda con: con.execute("UPDATE webhook_deliveries SET state = 'failed'"))
    assert await state.record(expire) == {goes_on.id}
    assert [await counted(state, table) for table in TABLES] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "http://localhost:9/", "http://169.254.169.254/", "ftp://a/b"]
)
async def test_a_webhook_does_not_lead_inside(tmp_path, url) -> None:
    async with run_scraping(tmp_path / "data", private="") as scraping:
        for path, body in (
            ("/api/crawl", {"url": "http://example.com/"}),
            ("/api/batch/scrape", {"urls": ["http://example.com/"]}),
        ):
            refused = await scraping.ask("POST", path, {**body, "webhook": url}, expect=400)
            assert refused["error"].startswith("webhook must")
        assert await counted(scraping.services.state, "scrape_jobs") == 0
