"""How well the main content is found: word F1 over pages written for this, against trafilatura on the
same pages. Words that belong to the content stand between `[[` and `]]` in the sources.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter

import pytest

from fairlead.scrape.page.extract import Source, Want, extract
from tests.unit.python.scrape.pages import PAGES

WORD = re.compile(r"\w+", re.UNICODE)


def words(text: str) -> Counter[str]:
    return Counter(WORD.findall(text.lower()))


def wanted_and_html(source: str) -> tuple[str, str]:
    wanted = " ".join(
        re.sub(r"<[^>]*>", " ", part) for part in re.findall(r"\[\[(.*?)\]\]", source, re.DOTALL)
    )
    return wanted, source.replace("[[", "").replace("]]", "")


def f1(found: str, wanted: str) -> float:
    a, b = words(found), words(wanted)
    both = sum((a & b).values())
    if not both:
        return 0.0
    precision, recall = both / sum(a.values()), both / sum(b.values())
    return 2 * precision * recall / (precision + recall)


def ours(html: str) -> str:
    source = Source("http://site.example/a", html.encode(), "text/html; charset=utf-8")
    return str(extract(source, Want(form="text"))[0]["content"])


@pytest.mark.parametrize("name", sorted(PAGES))
def test_each_page_is_read_well(name: str) -> None:
    wanted, html = wanted_and_html(PAGES[name])
    assert f1(ours(html), wanted) >= 0.85, ours(html)


@pytest.mark.filterwarnings("ignore")
def test_on_the_whole_it_is_no_worse_than_trafilatura() -> None:
    trafilatura = pytest.importorskip("trafilatura")
    mine, theirs = [], []
    for name in sorted(PAGES):
        wanted, html = wanted_and_html(PAGES[name])
        mine.append(f1(ours(html), wanted))
        theirs.append(f1(trafilatura.extract(html) or "", wanted))
    print(
        {
            name: (round(a, 3), round(b, 3))
            for name, a, b in zip(sorted(PAGES), mine, theirs, strict=True)
        }
    )
    assert statistics.mean(mine) >= 0.95
    assert statistics.mean(mine) >= statistics.mean(theirs)


def test_the_same_text_gives_the_same_content() -> None:
    for source in PAGES.values():
        _, html = wanted_and_html(source)
        assert ours(html) == ours(html)
