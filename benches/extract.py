"""How well and how fast pages are read: word F1 and time, against trafilatura on the same pages.

    python benches/extract.py [--rounds 30] [--save NAME]

F1 is over the pages of the tests (`tests/unit/python/scrape/pages.py`), whose words are marked as content or
not. Time is CPU time of one core, the least of the rounds, for a page of 100 KB with some two thousand elements:
from the bytes to the answer's document, as `page/worker.py` does it. Exit code 1 when a goal is missed.
"""

# ruff: noqa: ISC004 - lines of a page go on
from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import trafilatura

from fairlead.scrape.page.extract import Source, Want, extract
from tests.unit.python.scrape.pages import COOKIES, FOOTER, NAV, PAGES, RELATED
from tests.unit.python.scrape.test_quality import f1, wanted_and_html

GOAL_F1 = 0.95
GOAL_MS = 4.0
SIZE = 100_000
RESULTS = Path(__file__).parent / "results"
ADDRESS = "http://site.example/a"
# fmt: off
WORDS = [
    "the", "ferry", "of", "two", "rivers", "stands", "where", "people", "have", "lived", "for", "six",
    "centuries", "and", "every", "bridge", "was", "carried", "away", "by", "ice", "before", "dawn", "while",
    "engineers", "explained", "that", "its", "piers", "stood", "in", "gravel",
]
# fmt: on


def large_page() -> str:
    """100 KB of paragraphs with links, headings, tables, lists, code and figures; always the same."""
    dice = random.Random(1)
    parts = [
        f"<html lang=en><head><title>Page</title></head><body>{COOKIES}{NAV}<main class=content><article><h1>Page</h1>"
    ]
    size, count = len(parts[0]), 0
    while size < SIZE:
        count += 1
        if count % 12 == 0:
            block = f"<h2>Part {count}</h2>"
        elif count % 15 == 0:
            rows = "".join(f"<tr><td>{n}</td><td>{n * 2} crossings</td></tr>" for n in range(12))
            block = f"<table><tr><th>Day</th><th>Crossings</th></tr>{rows}</table>"
        elif count % 10 == 0:
            block = (
                "<ul>"
                + "".join(f'<li><a href="/l{n}">item {n}</a> and words</li>' for n in range(8))
                + "</ul>"
            )
        elif count % 17 == 0:
            block = '<pre><code class="language-python">x = 1\nprint(x)\n</code></pre>'
        elif count % 19 == 0:
            block = f'<figure><img src="/i{count}.jpg" alt="x"><figcaption>A caption.</figcaption></figure>'
        else:
            words = [dice.choice(WORDS) for _ in range(dice.randint(25, 70))]
            for at in range(0, len(words), 17):
                words[at] = f'<a href="/{words[at]}/{at}">{words[at]}</a>'
            words[1] = f"<b>{words[1]}</b>"
            block = f'<p class="para">{" ".join(words)}</p>'
        parts.append(f'<div class="block">{block}</div>')
        size += len(parts[-1])
    return "".join([*parts, "</article></main>", RELATED, FOOTER, "</body></html>"])


def source_of(html: str) -> Source:
    return Source(ADDRESS, html.encode(), "text/html; charset=utf-8")


def least_ms(work: Callable[[], object], rounds: int) -> float:
    """CPU time of the fastest round."""
    taken = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return 1000 * min(taken)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--save", help="a name below benches/results")
    chosen = parser.parse_args()
    ours, theirs = [], []
    for name in sorted(PAGES):
        wanted, html = wanted_and_html(PAGES[name])
        ours.append(f1(extract(source_of(html), Want(form="text"))[0]["content"], wanted))
        theirs.append(f1(trafilatura.extract(html) or "", wanted))
    large = large_page()
    source = source_of(large)
    times = {
        form: least_ms(lambda form=form: extract(source, Want(form=form)), chosen.rounds)  # type: ignore[misc]
        for form in ("markdown", "text", "html")
    }
    bar_ms = least_ms(lambda: trafilatura.extract(large), max(3, chosen.rounds // 10))
    mine, bar = statistics.mean(ours), statistics.mean(theirs)
    is_good, is_fast = mine >= max(GOAL_F1, bar), max(times.values()) <= GOAL_MS
    lines = [
        "# Reading pages",
        "",
        f"- system: {platform.system()}, Python {platform.python_version()}, trafilatura {version('trafilatura')}; "
        f"load {os.getloadavg()[0]:.1f}",
        f"- F1: mean over {len(ours)} pages written for it; time: CPU of one core, least of {chosen.rounds} "
        f"rounds, a page of {len(large):,} bytes with {large.count('<') - large.count('</'):,} elements",
        "",
        "| | word F1 | ms a page |",
        "| --- | --: | --: |",
        *(f"| fairlead, {form} | {f'{mine:.3f}' if form == 'text' else ''} | {ms:.2f} |" for form, ms in times.items()),
        f"| trafilatura | {bar:.3f} | {bar_ms:.1f} |",
        "",
        f"Goals: F1 at least {GOAL_F1} and no lower than trafilatura's ({'met' if is_good else '**missed**'}); at most "
        f"{GOAL_MS:g} ms ({'met' if is_fast else '**missed**'}).",
        "",
    ]  # fmt: skip
    text = "\n".join(lines)
    print(text)
    if chosen.save:
        (RESULTS / f"{chosen.save}.md").write_text(text)
    sys.exit(0 if is_good and is_fast else 1)


if __name__ == "__main__":
    main()
