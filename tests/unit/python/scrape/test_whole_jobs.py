"""Jobs taken whole: retries, failing fast, downloads, llms.txt, cleaning up; and the reader."""

from __future__ import annotations

import asyncio
import io
import json
import time
import zipfile
from typing import Any

import pytest

from fairlead.scrape.jobs.llmstxt_router import llms_txt
from tests.support.site import PAGES
from tests.unit.python.scrape.conftest import Scraping
from tests.unit.python.scrape.test_jobs import crawled, ended

pytestmark = pytest.mark.anyio


async def raw(scraping: Scraping, path: str, **headers: str) -> Any:
    principal = json.dumps({"kind": "key", "id": scraping.owner, "scopes": []})
    return await scraping.client.get(path, headers={"x-fairlead-principal": principal, **headers})


async def batch(scraping: Scraping, urls: list[str], **fields: Any) -> Any:
    started = await scraping.ask("POST", "/api/batch/scrape", {"urls": urls, **fields})
    return await ended(scraping, f"/api/batch/scrape/{started['id']}")


async def test_a_busy_host_is_asked_again_as_often_as_was_allowed(scraping, site) -> None:
    urls = [site.url("/flaky/2"), site.url("/missing")]
    answer = await batch(scraping, urls, maxRetries=2)
    states = {page["url"]: page["status"] for page in answer["jobs"]}
    assert states == {urls[0]: "completed", urls[1]: "failed"}
    asked = site.asked()
    # What is missing is not asked for again: it will be missing.
    assert asked["/flaky/2"] == 3
    never = await batch(scraping, [site.url("/flaky/3")], maxRetries=0)
    assert (never["status"], site.asked()["/flaky/3"]) == ("failed", 1)
    assert never["jobs"][0]["statusCode"] == 503
    once = await crawled(scraping, site.url("/flaky/1"), limit=1)
    assert (once["status"], site.asked()["/flaky/1"]) == ("completed", 2)


async def test_a_batch_that_fails_fast_reads_nothing_more(scraping, site) -> None:
    urls = [site.url("/missing"), *(site.url(f"/pages/{n}") for n in range(20))]
    answer = await batch(scraping, urls, failFast=True, concurrency=1)
    assert answer["status"] == "failed"
    assert "failFast" in answer["error"]
    assert answer["progress"] == {"total": 1, "completed": 0, "failed": 1, "pending": 0}


async def test_a_batch_shows_its_progress_without_pages_and_is_cleaned_up(scraping, site) -> None:
    answer = await batch(scraping, [site.url("/article")], timeout=10_000)
    path = f"/api/batch/scrape/{answer['id']}"
    little = await scraping.ask("GET", f"{path}/status")
    assert "jobs" not in little
    assert little["progress"]["completed"] == 1
    assert (await scraping.ask("POST", "/api/batch/cleanup?days=1"))["count"] == 0
    await scraping.services.state.database.write(
        lambda con: con.execute("UPDATE scrape_jobs SET ended_at_ms = ended_at_ms - 2 * 86400000")
    )
    stranger = scraping.as_owner("stranger")
    assert (await stranger.ask("POST", "/api/batch/cleanup?days=1"))["count"] == 0
    assert (await scraping.ask("POST", "/api/batch/cleanup?days=1"))["count"] == 1
    await scraping.ask("GET", path, expect=404)
    await scraping.ask("POST", "/api/batch/cleanup?days=0", expect=400)


async def test_a_crawl_is_downloaded_whole(scraping, site) -> None:
    answer = await crawled(
        scraping, site.url("/pages/0"), scrapeOptions={"extractorFormat": "markdown"}
    )
    path = f"/api/crawl/{answer['id']}/download"
    document = (await raw(scraping, f"{path}/json")).json()
    assert (document["crawlId"], document["originUrl"]) == (answer["id"], site.url("/pages/0"))
    assert document["count"] == len(document["pages"]) == PAGES
    assert len({page["url"] for page in document["pages"]}) == PAGES
    for form, ending in (("markdown", "md"), ("json", "json")):
        sent = await raw(scraping, f"{path}/zip?format={form}")
        assert sent.headers["content-type"] == "application/zip"
        archive = zipfile.ZipFile(io.BytesIO(sent.content))
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["count"] == PAGES == len(archive.namelist()) - 1
        first = manifest["pages"][0]
        assert first["file"] == f"00001-pages-0.{ending}"
        text = archive.read(first["file"]).decode()
        content = json.loads(text)["content"] if form == "json" else text
        assert content.startswith("# Page 0")
    await scraping.ask("GET", f"{path}/zip", expect=400, format="pdf")
    stranger = scraping.as_owner("stranger")
    await stranger.ask("GET", f"{path}/json", expect=404)
    failed = await crawled(scraping, site.url("/missing"))
    none = await scraping.ask("GET", f"/api/crawl/{failed['id']}/download/zip", expect=404)
    assert none == {"success": False, "error": "There is no page yet."}
    some = await batch(scraping, [site.url("/article")])
    whole = (await raw(scraping, f"/api/batch/scrape/{some['id']}/download/json")).json()
    assert (whole["batchId"], whole["count"]) == (some["id"], 1)
    assert (await raw(scraping, f"/api/batch/scrape/{some['id']}/download/zip")).status_code == 200


async def test_a_sites_llms_txt_is_written(scraping, site) -> None:
    body = {"url": site.url("/pages/40"), "maxUrls": 4, "includeFullText": True}
    started = await scraping.ask("POST", "/api/llmstxt", body)
    assert (started["status"], started["success"]) == ("pending", True)
    path = f"/api/llmstxt/{started['id']}"
    assert started["url"].endswith(path)
    deadline = time.monotonic() + 30
    while (answer := await scraping.ask("GET", path))["status"] not in {"completed", "failed"}:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    result = answer["result"]
    assert result["pageCount"] == 4 == answer["progress"]["completed"]
    assert result["llmstxt"].startswith("# Page 40\n\n## Pages\n\n- [Page 40](")
    assert f"- [On harbours]({site.url('/article')}): Why harbours silt up." in result["llmstxt"]
    assert "A harbour silts up" in result["llmsFullTxt"]
    await scraping.as_owner("stranger").ask("GET", path, expect=404)
    failed = await scraping.ask("POST", "/api/llmstxt", {"url": site.url("/missing"), "maxUrls": 1})
    while (answer := await scraping.ask("GET", f"/api/llmstxt/{failed['id']}"))["status"] not in {
        "completed",
        "failed",
    }:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    assert answer["status"] == "failed"
    assert "result" not in answer


def test_what_pages_say_of_themselves_stays_in_its_line() -> None:
    documents = [
        {"url": "http://a.example/", "title": "A\n# B", "metadata": {"description": "x\n> y"}},
        {"url": "http://a.example/docs/b", "title": "[C](http://evil)", "metadata": {}},
    ]
    assert llms_txt(documents) == (
        "# A # B\n\n> x > y\n\n## Pages\n\n- [A # B](http://a.example/): x > y\n\n"
        "## Docs\n\n- [(C)(http://evil)](http://a.example/docs/b)\n"
    )


async def test_the_reader_gives_markdown_bare_to_those_who_ask_for_it(scraping, site) -> None:
    path = f"/api/reader?url={site.url('/article')}"
    told = (await raw(scraping, path)).json()
    assert told["content"].startswith("# On harbours")
    bare = await raw(scraping, path, accept="text/markdown")
    assert bare.headers["content-type"].startswith("text/markdown")
    assert bare.text == told["content"] + "\n"
    assert "url is required" in (await scraping.ask("GET", "/api/reader", expect=400))["error"]


async def test_a_job_that_has_expired_is_gone_before_it_is_swept(scraping, site) -> None:
    answer = await crawled(scraping, site.url("/empty"))
    await scraping.services.state.database.write(
        lambda con: con.execute("UPDATE scrape_jobs SET expires_at_ms = 1")
    )
    await scraping.ask("GET", f"/api/crawl/{answer['id']}", expect=404)
