"""How well and how fast pages are read: precision, recall and time, against trafilatura on the same pages.

    python benches/extract.py [--rounds 30] [--save NAME]

Pages are those of the tests (`tests/unit/python/scrape/reading`): skeletons of markup in the manner of real systems,
filled with text and furniture; one half was tuned with, of the other only totals are looked at. Shingles of four words
are counted, precision and recall are means over pages, F1 is of these means. The first rows are articles
(`fitMarkdown`). Time is CPU time of one core, from the bytes to the answer's document, as `page/worker.py` does it: the
median over the pages, each the least of five rounds, and the least of the rounds for one page of 100 KB that is all
article. Exit code 1 when a goal is missed.
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

from fairlead.scrape.page.extract import ReadOptions, Source, extract
from tests.unit.python.scrape.pages import COOKIES, FOOTER, NAV, RELATED
from tests.unit.python.scrape.reading.score import Score, mean, score
from tests.unit.python.scrape.reading.template import Page, pages
from tests.unit.python.scrape.test_quality import article, text_of

GOAL_F1 = 0.965
GOAL_PART = 0.95
GOAL_MS = 4.0
GOAL_MEDIAN_MS = 3.0
MAIN = "markdown of the page without its surroundings"
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


def row(name: str, scores: list[Score], ms: list[float]) -> str:
    total = mean(scores)
    lost = sum(each.recall < 0.5 for each in scores)
    return (
        f"| {name} | {total.f1:.3f} | {total.precision:.3f} | {total.recall:.3f} | {lost} | "
        f"{statistics.median(ms):.2f} | {max(ms):.1f} |"
    )


def of_half(half: list[Page]) -> tuple[list[str], bool]:
    """The rows of one half, and whether it meets the goals."""
    lines, is_good = [], True
    for name, want in [
        ("text", ReadOptions(form="text", fit_markdown=True)),
        ("markdown", ReadOptions(form="markdown", fit_markdown=True)),
        (MAIN, ReadOptions(form="markdown")),
    ]:
        scores, ms = [], []
        for page in half:
            source = source_of(page.html)
            found = (
                text_of(str(extract(source, want)[0]["content"]))
                if name == MAIN
                else article(page.html, want.form)
            )
            scores.append(score(found, page.wanted))
            ms.append(least_ms(lambda source=source, want=want: extract(source, want), 5))  # type: ignore[misc]
        lines.append(row(f"fairlead, {name}", scores, ms))
        total = mean(scores)
        # The page without its surroundings has captions, comments and the like, so precision is not its goal.
        is_precise = total.f1 >= GOAL_F1 and total.precision >= GOAL_PART
        is_good &= (
            (is_precise or name == MAIN)
            and total.recall >= GOAL_PART
            and min(each.recall for each in scores) >= 0.5
            and statistics.median(ms) <= GOAL_MEDIAN_MS
        )
    theirs = [score(trafilatura.extract(page.html) or "", page.wanted) for page in half]
    ms = [least_ms(lambda page=page: trafilatura.extract(page.html), 1) for page in half]  # type: ignore[misc]
    return [*lines, row("trafilatura", theirs, ms)], is_good


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--save", help="a name below benches/results")
    chosen = parser.parse_args()
    parts, is_good = [], True
    for half in ("tuned", "held"):
        found = pages(half)
        rows, is_met = of_half(found)
        is_good &= is_met
        size = statistics.median(len(page.html) for page in found)
        parts += [
            f"## {half.capitalize()} half: {len(found)} pages, {size:,.0f} bytes in the median",
            "",
            "| | F1 | precision | recall | articles lost | ms a page, median | most |",
            "| --- | --: | --: | --: | --: | --: | --: |",
            *rows,
            "",
        ]
    large = large_page()
    source = source_of(large)
    times = {
        form: least_ms(lambda form=form: extract(source, ReadOptions(form=form)), chosen.rounds)  # type: ignore[misc]
        for form in ("markdown", "text", "html")
    }
    is_fast = max(times.values()) <= GOAL_MS
    lines = [
        "# Reading pages",
        "",
        f"- system: {platform.system()}, Python {platform.python_version()}, trafilatura {version('trafilatura')}; "
        f"load {os.getloadavg()[0]:.1f}",
        "- four-word shingles; precision and recall are means over pages, F1 is of these means; an article is lost "
        "when less than half of it is there; time is CPU of one core",
        "",
        *parts,
        f"## One page of {len(large):,} bytes that is all article, {large.count('<') - large.count('</'):,} elements",
        "",
        "| form | ms |",
        "| --- | --: |",
        *(f"| {form} | {ms:.2f} |" for form, ms in times.items()),
        "",
        f"Goals: F1 at least {GOAL_F1}, precision and recall at least {GOAL_PART}, no article lost, "
        f"{GOAL_MEDIAN_MS:g} ms in the median ({'met' if is_good else '**missed**'}); the large page in {GOAL_MS:g} ms "
        f"({'met' if is_fast else '**missed**'}).",
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if chosen.save:
        (RESULTS / f"{chosen.save}.md").write_text(text)
    sys.exit(0 if is_good and is_fast else 1)


if __name__ == "__main__":
    main()
