"""When browser sessions end, and when the browser itself is renewed. Clocks are turned back in place of waiting."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from fairlead.scrape.browser import process as process_module
from fairlead.scrape.browser import router as router_module
from fairlead.scrape.browser.process import ContextOptions
from fairlead.scrape.browser.sessions import ACTION_DEADLINE_S, AGE_S, IDLE_S, Session
from fairlead.scrape.scraper import scraper_of
from tests.support.chromium import needs_chromium

pytest.importorskip("playwright")
pytestmark = [
    pytest.mark.anyio,
    needs_chromium,
]

SESSIONS = "/api/browser/sessions"


async def opened(scraping: Any) -> Session:
    answer = await scraping.ask("POST", SESSIONS, {}, expect=201)
    found = scraper_of(scraping.services).sessions.find(answer["session"]["id"], scraping.owner)
    assert isinstance(found, Session)
    return found


async def gone(scraping: Any, session: Session) -> None:
    path = f"{SESSIONS}/{session.id}"
    for method, of, body in (
        ("GET", path, None),
        ("POST", f"{path}/action", {"type": "content"}),
        ("DELETE", path, None),
    ):
        answer = await scraping.ask(method, of, body, expect=404)
        assert "expired" in answer["error"]
    assert (await scraping.ask("GET", SESSIONS))["count"] == 0


async def test_a_session_ends_when_nobody_uses_it(scraping, site) -> None:
    sessions = scraper_of(scraping.services).sessions
    session = await opened(scraping)
    session.used_s -= IDLE_S - 5
    view = await scraping.ask("POST", f"{SESSIONS}/{session.id}/action", {"type": "content"})
    assert view["session"]["id"] == session.id
    # The action was a use: its time has begun anew.
    assert session.ends_s - time.monotonic() > IDLE_S - 5
    session.used_s -= IDLE_S
    await gone(scraping, session)
    assert session.context.is_alive
    await sessions.expire()
    assert not session.context.is_alive
    assert session.page.is_closed()


async def test_a_session_ends_of_age_however_busy_it_is(scraping, site) -> None:
    session = await opened(scraping)
    session.created_s -= AGE_S
    await gone(scraping, session)
    other = await opened(scraping)
    # Another that is opened makes room first.
    assert not session.context.is_alive
    other.created_s -= AGE_S
    async with other.turn:
        # What is under way comes to its end, and no further.
        assert 0 < other.ends_s - time.monotonic() <= ACTION_DEADLINE_S
        await scraper_of(scraping.services).sessions.expire()
        assert other.context.is_alive
    await gone(scraping, other)


async def test_sessions_whose_time_is_over_take_no_room(scraping, site) -> None:
    held = [await opened(scraping) for _ in range(5)]
    await scraping.ask("POST", SESSIONS, {}, expect=429)
    held[0].used_s -= IDLE_S
    await opened(scraping)
    assert (await scraping.ask("GET", SESSIONS))["count"] == 5


async def test_the_sweep_closes_what_has_expired_or_lost_its_browser(
    scraping, site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router_module, "EXPIRE_EVERY_S", 0.02)
    idle, lost = await opened(scraping), await opened(scraping)
    sweep = asyncio.create_task(router_module.expire_sessions(scraping.services))
    try:
        idle.used_s -= IDLE_S
        async with asyncio.timeout(10):
            while idle.context.is_alive:
                await asyncio.sleep(0.01)
        assert lost.context.is_alive
        await lost.context._process.browser.close()
        async with asyncio.timeout(10):
            while (await scraping.ask("GET", SESSIONS))["count"]:
                await asyncio.sleep(0.01)
    finally:
        sweep.cancel()
        await asyncio.gather(sweep, return_exceptions=True)
    # And another is opened in another browser.
    assert (await opened(scraping)).context.is_alive


async def test_the_browser_is_renewed_when_it_is_worn(
    scraping, site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "CONTEXTS_WORN", 3)
    browser = scraper_of(scraping.services).browser
    options = {"useBrowser": True, "skipCache": True}
    session = await opened(scraping)
    first = browser._present
    assert first is not None
    await scraping.scrape(site.url("/article"), **options)
    await scraping.scrape(site.url("/article"), **options)
    assert (browser._present, first.opened, browser.processes) == (first, 3, 1)
    # It takes no more; what is open in it goes on until it is closed.
    await scraping.scrape(site.url("/article"), **options)
    assert browser._present is not first
    assert browser.processes == 2
    act = {"type": "navigate", "url": site.url("/article")}
    answer = await scraping.ask("POST", f"{SESSIONS}/{session.id}/action", act)
    assert answer["result"]["status"] == 200
    await scraping.ask("DELETE", f"{SESSIONS}/{session.id}")
    assert browser.processes == 1
    assert not first.browser.is_connected()


async def test_a_worn_browser_with_nobody_in_it_ends_at_once(
    scraping, site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "CONTEXTS_WORN", 2)
    browser = scraper_of(scraping.services).browser
    for opened_in_all, left in ((1, 1), (2, 0), (3, 1)):
        context = await browser.open(ContextOptions())
        assert browser.processes == 1, opened_in_all
        await context.close()
        assert browser.processes == left
