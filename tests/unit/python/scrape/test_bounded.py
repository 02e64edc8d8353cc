"""What a page's scripts answer is bounded before it leaves the browser, also where the page has bent the language."""

from __future__ import annotations

import resource
from typing import Any

import pytest

from tests.support.chromium import needs_chromium

pytest.importorskip("playwright")
pytestmark = [pytest.mark.anyio, needs_chromium]

SESSIONS = "/api/browser/sessions"
HUGE = "'x'.repeat(400 * 1024 * 1024)"
# Every function that our scripts use, bent by the page to say little and give much.
BENT = """
  JSON.stringify = () => 'y'.repeat(3e7);
  String.prototype.slice = function () { return 'y'.repeat(3e7); };
  Array.prototype.slice = Array.prototype.filter = Array.prototype.map = function () { return ['y'.repeat(3e7)]; };
  Object.defineProperty(document, 'title', {get: () => 'y'.repeat(3e7)});
  Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'y'.repeat(3e7)});
  XMLSerializer.prototype.serializeToString = () => 'y'.repeat(3e7);
"""


class Tab:
    def __init__(self, scraping: Any) -> None:
        self._scraping = scraping
        self._path = ""

    async def open(self) -> Tab:
        answer = await self._scraping.ask("POST", SESSIONS, {}, expect=201)
        self._path = f"{SESSIONS}/{answer['session']['id']}"
        return self

    async def do(self, kind: str, *, expect: int = 200, **fields: Any) -> Any:
        body = {"type": kind, **fields}
        return await self._scraping.ask("POST", f"{self._path}/action", body, expect=expect)

    async def value(self, script: str) -> Any:
        return (await self.do("evaluate", script=script))["result"]["value"]

    async def refused(self, kind: str, **fields: Any) -> str:
        return str((await self.do(kind, expect=400, **fields))["error"])


@pytest.fixture
async def tab(scraping: Any) -> Tab:
    return await Tab(scraping).open()


# What a script answers, and the value that comes.
VALUES: list[tuple[str, Any]] = [
    ("1 + 1", 2),
    ("() => ({a: [1, null, 'x', true]})", {"a": [1, None, "x", True]}),
    ("Promise.resolve('later')", "later"),
    ("function () { return 3; }", 3),
    ("async function named() { return [4]; }", [4]),
    ("let a = 5; a + 1", 6),
    ("undefined", None),
    ("document.body", {}),
    ("12n", 12),
    ("new Date(0)", "1970-01-01T00:00:00.000Z"),
    ("'x'.repeat(999998)", "x" * 999_998),
]


async def test_values_come_as_json_has_them(tab: Tab) -> None:
    """All in one browser: to start one takes longer than to ask it all of them."""
    for script, value in VALUES:
        assert await tab.value(script) == value, script


async def test_a_value_that_is_too_large_never_comes_here(tab: Tab) -> None:
    await tab.value("1")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for script in (HUGE, f"({{a: {HUGE}}})", "'x'.repeat(1000001)"):
        assert "larger than 1000000 characters" in await tab.refused("evaluate", script=script)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 200 * 1024


async def test_a_title_and_a_page_that_are_too_large_never_come_here(tab: Tab) -> None:
    await tab.value("1")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = await tab.do("evaluate", script=f"document.title = {HUGE}; 1")
    assert answer["session"]["currentTitle"] == "x" * 500
    assert "larger than" in await tab.refused("content")
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 200 * 1024


async def test_a_page_that_bends_the_language_is_bounded_too(tab: Tab, scraping: Any) -> None:
    answer = await tab.do("evaluate", script=f"{BENT}; 1", expect=400)
    assert "larger than" in answer["error"]
    assert "larger than" in await tab.refused("content")
    # Playwright itself stumbles over what was bent; what matters is how little comes of it.
    assert len(await tab.refused("evaluate", script="2")) < 1000
