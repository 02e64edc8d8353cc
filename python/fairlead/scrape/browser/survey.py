"""A survey of a page for an agent: its address, its title, its HTML, and the elements that can be clicked or filled."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Final

from fairlead.scrape.browser.evaluate import evaluate_bounded, text_of, title_of
from fairlead.scrape.fetch.fetcher import PAGE_MAX_BYTES

ELEMENTS_MAX: Final = 100
FIELD_MAX_CHARS: Final = 300
# More than `ELEMENTS_MAX` elements with all their fields and options need.
ELEMENTS_MAX_CHARS: Final = 2_000_000
LOAD_MS: Final = 10_000
QUIET_MS: Final = 1500

_FIELDS: Final = ("selector", "tag", "type", "name", "text", "value", "href", "options")

# A page may tamper with the result, so it is cut and checked for types when it arrives.
_LIST_ELEMENTS: Final = """([most, width]) => {
  const only = (id) => id && document.querySelectorAll('#' + CSS.escape(id)).length === 1;
  const path = (element) => {
    const parts = [];
    for (let each = element; each && each !== document.documentElement; each = each.parentElement) {
      if (only(each.id)) { parts.unshift('#' + CSS.escape(each.id)); break; }
      let place = 1;
      for (let s = each.previousElementSibling; s; s = s.previousElementSibling)
        place += s.localName === each.localName;
      parts.unshift(each.localName + ':nth-of-type(' + place + ')');
    }
    return parts.join(' > ');
  };
  const shown = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(element).visibility === 'visible';
  };
  const cut = (text) => String(text ?? '').replace(/\\s+/g, ' ').trim().slice(0, width);
  const all = document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, '
    + '[role=button], [role=link], [role=checkbox], [role=tab], [contenteditable=true], [onclick]');
  return [...all].filter(shown).slice(0, most).map((e) => ({
    selector: path(e), tag: e.localName, type: cut(e.type), name: cut(e.name || e.ariaLabel || e.placeholder),
    text: e.localName === 'select' ? '' : cut(e.innerText), value: e.type === 'password' ? '' : cut(e.value),
    href: cut(e.localName === 'a' ? e.href : ''),
    options: e.localName === 'select' ? [...e.options].slice(0, 30).map((o) => cut(o.value) + ': ' + cut(o.text)) : [],
  }));
}"""


@dataclass(frozen=True, slots=True)
class Survey:
    """The current page. `windows` are the addresses of popups, which were closed."""

    url: str
    title: str
    html: str
    elements: list[dict[str, Any]]
    windows: list[str]


async def settle(page: Any) -> None:
    """Waits until the page is loaded and its network is quiet, at most `LOAD_MS` and `QUIET_MS`."""
    with contextlib.suppress(Exception):
        await page.wait_for_load_state("load", timeout=LOAD_MS)
        await page.wait_for_load_state("networkidle", timeout=QUIET_MS)


async def survey_of(page: Any, windows: list[str]) -> Survey:
    """Surveys the page. What Playwright raises, or `FetchFailed`."""
    html = await text_of(page, PAGE_MAX_BYTES)
    found = await evaluate_bounded(
        page, _LIST_ELEMENTS, [ELEMENTS_MAX, FIELD_MAX_CHARS], ELEMENTS_MAX_CHARS
    )
    elements = [
        _typed(each)
        for each in (found if isinstance(found, list) else [])[:ELEMENTS_MAX]
        if isinstance(each, dict)
    ]
    title = (await title_of(page))[:FIELD_MAX_CHARS]
    return Survey(str(page.url)[:2048], title, html, elements, list(windows))


def _typed(element: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in _FIELDS:
        value = element.get(name)
        if isinstance(value, list):
            value = [str(each)[:FIELD_MAX_CHARS] for each in value[:30]]
        elif not isinstance(value, str):
            continue
        if value:
            fields[name] = value[: 4 * FIELD_MAX_CHARS] if isinstance(value, str) else value
    return fields
