"""A browser where a page needs one: which pages are shells, when a render has ended, and who decides."""

from __future__ import annotations

import time

import pytest

from fairlead.scrape.browser import process
from fairlead.scrape.page.shell import is_shell
from tests.support.chromium import needs_chromium
from tests.support.site import ARTICLE
from tests.unit.python.scrape.conftest import run_scraping
from tests.unit.python.scrape.test_jobs import ended

SCRIPT = "<script src=/app.js></script>"
LONG = "<p>" + "words that say something " * 20


@pytest.mark.parametrize(
    ("html", "is_a_shell"),
    [
        (f"<div id=root></div>{SCRIPT}", True),
        (f"<nav>Home Prices Help Contact</nav><div id=__next></div>{SCRIPT}", True),
        (f"<p>Loading...</p>{SCRIPT}", True),
        (f"<noscript>You need to enable JavaScript.</noscript><app-root></app-root>{SCRIPT}", True),
        (f"<div id=app>{LONG}</div>{SCRIPT}", False),
        (f"<div id=root></div>{LONG}{SCRIPT}", False),
        ("<h1>Short</h1><p>No script here.", False),
        ("<h1>Short</h1><script type=application/ld+json>{}</script>", False),
        (f"<h1>Opening hours</h1><p>{'Monday to Friday from nine to five, ' * 2}{SCRIPT}", False),
        (ARTICLE, False),
        ("", False),
    ],
)
def test_a_shell_has_hardly_a_word_and_a_script(html: str, is_a_shell: bool) -> None:
    assert is_shell(html.encode(), "text/html; charset=utf-8") is is_a_shell


@needs_chromium
@pytest.mark.anyio
async def test_a_shell_is_rendered_where_the_caller_or_the_operator_says_so(tmp_path, site) -> None:
    pytest.importorskip("playwright")
    shell = site.url("/shell")
    form = {"extractorFormat": "text"}
    async with run_scraping(tmp_path / "data") as scraping:
        assert (await scraping.scrape(shell, **form))["content"] == "Loading..."
        page = await scraping.scrape(shell, useBrowser="auto", **form)
        assert "High water is at noon." in page["content"]
        assert page["metadata"]["renderMode"] == "browser"
        # A page that has its words is not rendered.
        plain = await scraping.scrape(site.url("/article"), useBrowser="auto", **form)
        assert "renderMode" not in plain["metadata"]
        assert "Dredgers" in plain["content"]
        crawl = {"url": shell, "limit": 1, "useBrowser": "auto", "scrapeOptions": form}
        started = await scraping.ask("POST", "/api/crawl", crawl)
        view = await ended(scraping, f"/api/crawl/{started['id']}")
        assert "High water is at noon." in view["jobs"][0]["document"]["content"]
    async with run_scraping(tmp_path / "auto", scrapeBrowser="auto") as scraping:
        assert "High water" in (await scraping.scrape(shell, **form))["content"]
        never = await scraping.scrape(shell, useBrowser=False, **form)
        assert never["content"] == "Loading..."


@needs_chromium
@pytest.mark.anyio
async def test_a_render_ends_when_the_page_is_quiet(scraping, site) -> None:
    pytest.importorskip("playwright")
    form = {"extractorFormat": "text", "skipCache": True, "useBrowser": True}
    page = await scraping.scrape(site.url("/shell"), **form)
    assert "High water is at noon." in page["content"]
    # A page that never rests is read after five seconds.
    begun_s = time.monotonic()
    await scraping.scrape(site.url("/restless"), **form)
    assert time.monotonic() - begun_s >= 5
    # Who names a wait waits for that alone.
    begun_s = time.monotonic()
    await scraping.scrape(site.url("/restless"), waitForSelector="#count", **form)
    assert time.monotonic() - begun_s < 5


@pytest.mark.anyio
async def test_without_a_browser_a_shell_is_what_http_gives(scraping, site, monkeypatch) -> None:
    monkeypatch.setattr(process, "PROGRAMS", ())
    page = await scraping.scrape(site.url("/shell"), extractorFormat="text", useBrowser="auto")
    assert page["content"] == "Loading..."
