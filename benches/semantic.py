"""Judges the vector tier of the response cache by pairs of questions that people wrote down.

    python benches/semantic.py [--lookup] [--keep]

`benches/semantic/paraphrases.tsv` has pairs that ask the same, `near_misses.tsv` pairs that nearly do, by what
makes the difference; lines with an odd number are the half that the guard was made with, the others were held
out. `wider/` has a second collection, from more trades and in more phrasings; there a hash of the pair says
which half it belongs to. `unseen/` has a third, in the style of people who type to support, coding, finance,
medicine and travel bots, in ten languages, written without a look at the rules; no rule is made for it.

Asks for the extra `vectors`; the pairs are judged by the same Rust code that serves requests. `--lookup`
measures lookups among 10,000 to 500,000 entries too, in processor time, beside a scan of all. `--keep` writes
the figures and the picture to benches/results and docs/explanation. Ends with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAIRS = ROOT / "benches" / "semantic"
FIGURES = ROOT / "benches" / "results" / "semantic-cache.json"
PICTURE = ROOT / "docs" / "explanation" / "response-cache.svg"

THRESHOLD = 0.8
HIT_BAR, FALSE_BAR = 0.55, 0.005
LOOKUP_BAR_US, LOOKUP_ENTRIES, RECALL_BAR = 100.0, 200_000, 0.99
THRESHOLDS = [round(0.50 + step / 50, 2) for step in range(26)]
PARAPHRASE = "paraphrase"
UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair, whether it was held out, and what the tier makes of it. `cause`: why the guard refuses."""

    kind: str
    first: str
    second: str
    held_out: bool
    is_unseen: bool
    similarity: float
    cause: str | None

    def is_hit(self, threshold: float, *, guarded: bool = True) -> bool:
        return self.similarity >= threshold and (self.cause is None or not guarded)


def main() -> int:
    options = arguments()
    files = vectors()
    run = partial(run_example, options.profile, files)
    judged = judge(run)
    check_tokens(run, files[1], judged)
    figures: dict[str, Any] = {
        "threshold": THRESHOLD,
        "pairs": {"paraphrase": 0, "near miss": 0},
        "curve": {},
        "kinds": kinds([pair for pair in judged if not pair.is_unseen]),
    }
    for pair in (pair for pair in judged if not pair.is_unseen):
        figures["pairs"]["paraphrase" if pair.kind == PARAPHRASE else "near miss"] += 1
    for name, pairs in halves(judged).items():
        figures["curve"][name] = [rates(pairs, threshold) for threshold in THRESHOLDS]
    if options.lookup:
        figures["lookup"] = lookup(run, judged)
    print(page(figures, judged))
    if options.keep:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
        PICTURE.write_text(picture(figures["curve"]["all"]), "utf-8")
    return 0 if all(met for _, met in bars(figures)) else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--lookup", action="store_true", help="measure a lookup, too")
    parser.add_argument("--profile", default="release", help="how the Rust code is built")
    parser.add_argument("--keep", action="store_true", help="keep figures and picture")
    return parser.parse_args()


def vectors() -> list[str]:
    from fairlead.process.extra import install_command
    from fairlead.process.vectors import vector_files

    files = vector_files()
    if files is None:
        raise SystemExit(f"The word vectors are missing: {install_command('vectors')}")
    return [files["weights"], files["tokenizer"]]


def read_pairs() -> Iterable[tuple[str, str, str, bool, bool]]:
    """Kind, both texts, whether the pair was held out, and whether it is of the collection without rules."""
    for folder in (PAIRS, PAIRS / "wider", PAIRS / UNSEEN):
        for name in ("paraphrases.tsv", "near_misses.tsv"):
            lines = (folder / name).read_text("utf-8").splitlines()
            for number, line in enumerate(lines, start=1):
                fields = line.split("\t")
                kind = PARAPHRASE if len(fields) == 2 else fields[0]
                is_unseen = folder.name == UNSEEN
                held_out = number % 2 == 0 if folder == PAIRS else is_held_out(fields[-2:])
                yield kind, fields[-2], fields[-1], held_out or is_unseen, is_unseen


def is_held_out(pair: Sequence[str]) -> bool:
    return hashlib.sha256("\t".join(pair).encode()).digest()[0] % 2 == 0


Run = Callable[[str, Iterable[str]], list[Any]]


def run_example(profile: str, files: Sequence[str], name: str, lines: Iterable[str]) -> list[Any]:
    """One JSON document for each line that the example writes."""
    command = ["cargo", "run", "--profile", profile, "--quiet", "--locked", "-p", "fairlead-cache"]
    done = subprocess.run(
        [*command, "--example", name, "--", *files],
        input="\n".join(lines),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def judge(run: Run) -> list[Judged]:
    pairs = list(read_pairs())
    told = run("semantic", (f"{first}\t{second}" for _, first, second, *_ in pairs))
    return [
        Judged(*pair, similarity=one["similarity"], cause=one["cause"])
        for pair, one in zip(pairs, told, strict=True)
    ]


def check_tokens(run: Run, tokenizer: str, judged: Sequence[Judged]) -> None:
    """Our tokens must be those of the library that the vocabulary was made for."""
    from tokenizers import Tokenizer

    reference = Tokenizer.from_file(tokenizer)
    texts = sorted({text for pair in judged for text in (pair.first, pair.second)})
    texts += ["", " ", "  two  blanks ", "tab\tinside", "naïve café", "日本語", "🙂🙂", "a" * 300]
    told = run("tokens", (json.dumps(text) for text in texts))
    for text, tokens in zip(texts, told, strict=True):
        expected = reference.encode(text, add_special_tokens=False).ids
        if tokens != expected:
            raise SystemExit(f"{text!r} has tokens {tokens}, and the reference says {expected}")


def halves(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    known = [pair for pair in judged if not pair.is_unseen]
    return {
        "all": known,
        "development": [pair for pair in known if not pair.held_out],
        "held out": [pair for pair in known if pair.held_out],
        UNSEEN: [pair for pair in judged if pair.is_unseen],
    }


def rates(pairs: Sequence[Judged], threshold: float) -> dict[str, float]:
    """Shares of hits, with the guard and by the threshold alone."""

    def share(wanted: bool, guarded: bool) -> float:
        some = [pair for pair in pairs if (pair.kind == PARAPHRASE) == wanted]
        hits = sum(pair.is_hit(threshold, guarded=guarded) for pair in some)
        return round(hits / len(some), 4)

    return {
        "threshold": threshold,
        "hit_rate": share(True, True),
        "false_hit_rate": share(False, True),
        "plain_hit_rate": share(True, False),
        "plain_false_hit_rate": share(False, False),
    }


def kinds(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """For each kind: pairs, hits at the default threshold, hits by the threshold alone."""
    told: dict[str, dict[str, int]] = {}
    for pair in judged:
        one = told.setdefault(pair.kind, {"pairs": 0, "hits": 0, "plain_hits": 0})
        one["pairs"] += 1
        one["hits"] += pair.is_hit(THRESHOLD)
        one["plain_hits"] += pair.is_hit(THRESHOLD, guarded=False)
    return told


def lookup(run: Run, judged: Sequence[Judged]) -> Any:
    texts = sorted({text for pair in judged for text in (pair.first, pair.second)})
    (told,) = run("lookup", texts)
    return told


def bars(figures: dict[str, Any]) -> list[tuple[str, bool]]:
    told = []
    for name, curve in figures["curve"].items():
        at = next(point for point in curve if point["threshold"] == THRESHOLD)
        hit, false = at["hit_rate"], at["false_hit_rate"]
        if name == UNSEEN:
            # Told and not judged: a rule for one of these pairs would make them pairs like the others.
            told.append((f"{name}: hits {hit:.1%}, no bar", True))
        else:
            told.append((f"{name}: hits {hit:.1%}, at least {HIT_BAR:.0%}", hit >= HIT_BAR))
        told.append(
            (f"{name}: false hits {false:.2%}, at most {FALSE_BAR:.1%}", false <= FALSE_BAR)
        )
    if "lookup" in figures:
        for size in figures["lookup"]["sizes"]:
            took, recall = size["lookup_us"], size["recall_at_1"]
            among = f"lookup among {size['entries']:,}"
            told.append((f"{among}: recall@1 {recall:.2f}, a scan is 1", recall >= RECALL_BAR))
            if size["entries"] == LOOKUP_ENTRIES:
                text = f"{among}: {took:.1f} us, at most {LOOKUP_BAR_US:.0f} us"
                told.append((text, took <= LOOKUP_BAR_US))
    return told


def page(figures: dict[str, Any], judged: Sequence[Judged]) -> str:
    counts = figures["pairs"]
    lines = [f"{counts['paraphrase']} paraphrases, {counts['near miss']} near-misses", ""]
    lines += [f"{'met   ' if met else 'MISSED'} {text}" for text, met in bars(figures)]
    lines += ["", "kind          pairs  hits  by the threshold alone"]
    for kind, one in sorted(figures["kinds"].items()):
        lines.append(f"{kind:12} {one['pairs']:6} {one['hits']:5} {one['plain_hits']:6}")
    # Those that were held out are counted and not shown, so that no rule is made for one of them.
    wrong = [p for p in judged if p.kind != PARAPHRASE and not p.held_out and p.is_hit(THRESHOLD)]
    lines += ["", *(f"wrong: {pair.first} | {pair.second}" for pair in wrong)]
    if "lookup" in figures:
        lines.append(json.dumps(figures["lookup"]))
    return "\n".join(lines)


# ------------------------------------------------------------------------------------ the picture

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 400, 60, 30, 210, 50
LINES = (
    ("hit_rate", "#1b6ca8", "", "paraphrases, guarded"),
    ("false_hit_rate", "#b3261e", "", "near-misses, guarded"),
    ("plain_hit_rate", "#1b6ca8", "5 4", "paraphrases, threshold alone"),
    ("plain_false_hit_rate", "#b3261e", "5 4", "near-misses, threshold alone"),
)


def picture(curve: Sequence[dict[str, float]]) -> str:
    """The shares of hits over thresholds, as SVG."""
    low, high = curve[0]["threshold"], curve[-1]["threshold"]
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(threshold: float) -> float:
        return round(LEFT + (threshold - low) / (high - low) * across, 1)

    def y(share: float) -> float:
        return round(TOP + (1 - share) * down, 1)

    def text(at_x: float, at_y: float, words: str, anchor: str = "start") -> str:
        return f'<text x="{at_x}" y="{at_y}" text-anchor="{anchor}">{html.escape(words)}</text>'

    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#333">'
    )
    parts = [
        opening,
        "<title>Share of pairs that the vector tier answers, over the threshold</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts.append(
            f'<line x1="{LEFT}" x2="{LEFT + across}" y1="{y(share)}" y2="{y(share)}" stroke="#ddd"/>'
        )
        parts.append(text(LEFT - 8, y(share) + 4, f"{share:.0%}", "end"))
    parts += [
        text(x(threshold), TOP + down + 20, f"{threshold:.1f}", "middle")
        for threshold in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    ]
    parts.append(text(LEFT + across / 2, HEIGHT - 10, "similarity threshold", "middle"))
    parts.append(
        f'<line x1="{x(THRESHOLD)}" x2="{x(THRESHOLD)}" y1="{TOP}" y2="{TOP + down}" '
        'stroke="#999" stroke-dasharray="2 3"/>'
    )
    parts.append(text(x(THRESHOLD), TOP - 8, "default", "middle"))
    for place, (name, colour, dashes, words) in enumerate(LINES):
        points = " ".join(f"{x(one['threshold'])},{y(one[name])}" for one in curve)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        style = f'fill="none" stroke="{colour}" stroke-width="2"{dashed}'
        parts.append(f'<polyline points="{points}" {style}/>')
        at_y = TOP + 20 + 22 * place
        at_x = LEFT + across + 14
        parts.append(f'<line x1="{at_x}" x2="{at_x + 24}" y1="{at_y}" y2="{at_y}" {style}/>')
        parts.append(text(at_x + 30, at_y + 4, words))
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
