"""What else of a page is told: other forms of it, contacts, files by the browser, and whether it has changed."""

from __future__ import annotations

import base64

import pytest

from fairlead.scrape.change_tracking import KEPT_MS
from fairlead.scrape.page.fence import fenced
from fairlead.scrape.requests.jobs import ExtractJobRequest
from tests.support.chromium import needs_chromium

pytestmark = pytest.mark.anyio


async def test_one_scrape_gives_the_page_in_several_forms(scraping, site) -> None:
    forms = ["markdown", "html", "text", "rawHtml", "links", "tables"]
    answer = await scraping.scrape(site.url("/article"), extractorFormat="markdown", formats=forms)
    formats = answer["formats"]
    assert set(formats) == set(forms)
    assert formats["markdown"] == answer["content"]
    assert "<h1>On harbours</h1>" in formats["html"]
    assert "<script" not in formats["html"]
    assert "<script>" in formats["rawHtml"]
    assert "Related" not in formats["text"]
    assert "**sand" not in formats["text"]
    plain = await scraping.scrape(site.url("/robots.txt"), formats=["markdown", "text"])
    assert plain["formats"]["markdown"].startswith("```\nUser-agent")
    assert plain["formats"]["text"].startswith("User-agent")
    refused = await scraping.scrape(site.url("/article"), formats=["docx"], expect=400)
    assert "options.formats" in refused["error"]


def test_text_cannot_end_the_block_that_it_stands_in() -> None:
    assert fenced("one ` and two ``") == "```\none ` and two ``\n```"
    assert fenced("```\n`````", "xml") == "``````xml\n```\n`````\n``````"


def test_what_a_model_is_not_shown_is_not_asked_of_a_page() -> None:
    wants = {"formats": ["pdf"], "extractionOptions": {"screenshot": True}, "fitMarkdown": True}
    ask = ExtractJobRequest.model_validate(
        {"url": "http://x/", "prompt": "all", "scrapeOptions": wants}
    )
    crawl = ask.as_crawl()
    assert crawl is not None
    for options in (ask.page_options, crawl.page_options):
        assert not options.needs_browser
        assert options.fit_markdown
        assert options.extractor_format == "markdown"


async def test_contacts_are_what_links_and_words_say(scraping, site) -> None:
    answer = await scraping.scrape(site.url("/contact"), formats=["contacts"])
    assert answer["formats"]["contacts"] == {
        "emails": ["Master@harbour.example", "port@harbour.example"],
        "phones": ["+4402079460000"],
        "social": [{"platform": "linkedin", "url": "https://www.linkedin.com/company/harbour"}],
    }


async def test_changes_are_told_to_each_caller(scraping, site) -> None:
    mine = scraping.as_owner("watcher")

    async def status(path: str, who=mine) -> str:
        answer = await who.scrape(site.url(path), formats=["changeTracking"])
        assert answer["metadata"]["fromCache"] is False
        assert "fingerprint" not in answer
        return answer["formats"]["changeTracking"]["changeStatus"]

    assert [await status("/pages/1") for _ in range(2)] == ["new", "same"]
    assert [await status("/clock") for _ in range(3)] == ["new", "changed", "changed"]
    assert await status("/pages/1", scraping.as_owner("somebody")) == "new"
    await scraping.services.state.database.write(
        lambda con: con.execute("UPDATE scrape_seen SET at_ms = at_ms - ?", [KEPT_MS + 1])
    )
    assert await status("/pages/1") == "new"


@needs_chromium
async def test_the_browser_gives_a_page_as_files(scraping, site) -> None:
    pytest.importorskip("playwright")
    scraping.client.timeout = 90
    answer = await scraping.scrape(site.url("/article"), formats=["pdf", "mhtml", "text"])
    kind, _, paper = answer["formats"]["pdf"].partition(",")
    assert kind == "data:application/pdf;base64"
    assert base64.b64decode(paper).startswith(b"%PDF-")
    assert "Content-Type: multipart/related" in answer["formats"]["mhtml"]
    assert "On harbours" in answer["formats"]["mhtml"]
    # Nothing of it is kept.
    count = await scraping.services.state.read(
        lambda con: con.execute("SELECT count(*) FROM scrape_cache").fetchone()
    )
    assert count == (0,)
