"""What a reader wants of pages of many kinds, and what surrounds it: `kinds` has the pages and `facts.json` both lists,
which were written before the code was tuned. Some pages are the unchanged output of Sphinx, MkDocs and pdoc.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import orjson
import pytest

from fairlead.scrape.page.extract import ReadOptions, Source, extract

KINDS: Final = Path(__file__).parent / "kinds"
FACTS: Final = orjson.loads((KINDS / "facts.json").read_bytes())
_LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https://video|http://site\.example/i/)[^)]*\)")


def page(name: str) -> str:
    return (KINDS / f"{name}.html").read_text()


def ours(html: str, *, is_fit: bool = False) -> str:
    source = Source("http://site.example/a", html.encode(), "text/html; charset=utf-8")
    document, _ = extract(source, ReadOptions(form="markdown", fit_markdown=is_fit))
    return str(document["content"])


def shown(markdown: str) -> str:
    """Markdown with single blanks, without escapes, emphasis and the targets of links."""
    text = re.sub(r"\\(.)", r"\1", _LINK.sub(r"\1", markdown))
    return " ".join(re.sub(r"\*\*|(?<!\w)\*|\*(?!\w)|~~", "", text).split())


def bare(markdown: str) -> str:
    """The same without markup and blanks, for readers that write tables and lists in another way."""
    return re.sub(r"[`|*\s]|---|(?<!\w)(?:-|\d+\.)\s", "", shown(markdown))


def kept(name: str, found: str, form: Callable[[str], str] = shown) -> list[str]:
    text = form(found)
    return [fact for fact in FACTS[name]["facts"] if form(fact) in text]


def test_nearly_all_facts_are_kept_and_hardly_any_chrome() -> None:
    facts = chrome = 0
    problems: list[str] = []
    for name, wanted in FACTS.items():
        found = ours(page(name))
        lost = [fact for fact in wanted["facts"] if fact not in kept(name, found)]
        left = [each for each in wanted["chrome"] if each in shown(found)]
        problems += [f"{name}: {lost=} {left=}"] if lost or left else []
        facts, chrome = facts + len(lost), chrome + len(left)
    assert facts <= 0.03 * sum(len(each["facts"]) for each in FACTS.values()), problems
    assert chrome <= 0.02 * sum(len(each["chrome"]) for each in FACTS.values()), problems


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(FACTS))
def test_no_kind_keeps_less_than_with_trafilatura(name: str) -> None:
    trafilatura = pytest.importorskip("trafilatura")
    html = page(name)
    theirs = trafilatura.extract(html, favor_recall=True) or ""
    mine = ours(html)
    assert len(kept(name, mine, bare)) >= len(kept(name, theirs, bare)), mine


@pytest.mark.parametrize("name", sorted(FACTS))
def test_fit_markdown_keeps_most_of_each_kind(name: str) -> None:
    found = ours(page(name), is_fit=True)
    assert len(kept(name, found, bare)) >= 0.5 * len(FACTS[name]["facts"]), found
