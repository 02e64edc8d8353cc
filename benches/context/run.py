"""What each compression mode saves and keeps, measured on the corpus beside this file.

    python benches/context/run.py [--half first|held_out] [--lost] [--times] | --hostile

Compiles the example `corpus` of the crate for release and prints a table for each half. A fact is kept when its
text is in the strings of the body that would go out; a conversation is answerable when all of its facts are. Times are
processor time. Ends with 1 when a bar is missed; times count for the bars
with `--times` alone. `--hostile` measures texts that are made to be slow, ten megabytes each, in place of the corpus.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HALVES = ("first", "held_out")
RUN_S = 600
CONVERSATIONS_MIN = 200


class Bar(NamedTuple):
    """What a mode must come to: shares from 0 to 1, milliseconds for 100 KB."""

    saved: float
    of: str
    """What is saved of: all texts, or those whose fields begin so."""
    facts: float
    ms: float | None


BARS = {
    "lite": Bar(0.08, "", 1.0, 1.0),
    "standard": Bar(0.20, "", 0.995, 3.0),
    "rtk": Bar(0.60, "tool_", 0.99, None),
    "stacked": Bar(0.55, "", 0.98, 8.0),
}


def example(name: str, profile: str) -> list[str]:
    """The command that runs an example of the crate."""
    command = ["cargo", "run", "--quiet", "--locked", "--profile", profile]
    return [*command, "-p", "fairlead-context", "--example", name]


def measured(half: str, profile: str) -> list[dict[str, Any]]:
    """One row for each conversation and mode."""
    command = example("corpus", profile)
    command += ["--", str(HERE / f"{half}.jsonl")]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S, check=True, env=os.environ
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


HOSTILE_MS_PER_MB = 100.0
HOSTILE_RUN_S = 3_600
"""Hundreds of bodies of ten megabytes: what is judged is processor time, and other work may slow the run."""


def hostile(profile: str) -> int:
    """Prints the slowest text of each mode and engine; 1 where one takes too long."""
    ran = subprocess.run(
        example("hostile", profile),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HOSTILE_RUN_S,
        check=True,
    )
    slowest: dict[str, tuple[float, str]] = {}
    for row in map(json.loads, ran.stdout.splitlines()):
        ms = row["ms"] / (row["bytes"] / 1e6)
        slowest[row["name"]] = max(slowest.get(row["name"], (0.0, "")), (ms, row["text"]))
    print("| mode or engine | ms per MB of the slowest text | which |\n| --- | --- | --- |")
    for name, (ms, text) in slowest.items():
        print(f"| {name} | {ms:.1f} | `{text}` |")
    return 1 if max(ms for ms, _ in slowest.values()) > HOSTILE_MS_PER_MB else 0


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def print_half(half: str, rows: list[dict[str, Any]], with_lost: bool) -> None:
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    kinds = sorted({row["kind"] for row in rows})
    ids = {row["id"] for row in rows}
    print(f"\n## {half}: {len(ids)} conversations\n")
    columns = [
        "mode",
        "saved",
        *(f"saved, {kind}" for kind in kinds),
        "saved, tool output",
        "facts kept",
        "answerable",
        "ms per 100 KB",
        "rejected",
    ]
    print("| " + " | ".join(columns) + " |")
    print("| --- " * len(columns) + "|")
    for mode in modes:
        of = [row for row in rows if row["mode"] == mode and row["report"]["stages"]]
        if not of:
            continue
        facts = sum(row["facts"] for row in of)
        lost = [(row["id"], fact) for row in of for fact in row["lost"]]
        cells = [
            mode,
            saved(of),
            *(saved([row for row in of if row["kind"] == kind]) for kind in kinds),
        ]
        cells.append(saved(of, "tool_"))
        cells.append(f"{facts - len(lost)} of {facts} ({share(facts - len(lost), facts)})")
        whole = sum(not row["lost"] for row in of)
        cells.append(f"{whole} of {len(of)}")
        cells.append(f"{ms_of_100_kb(of):.2f}")
        cells.append(
            str(sum(len(stage["rejected"]) for row in of for stage in row["report"]["stages"]))
        )
        print("| " + " | ".join(cells) + " |")
        if with_lost:
            for case, fact in dict.fromkeys(lost):
                print(f"    lost in {mode}: {case}: {fact}")
    print_engines(rows)


def saved(rows: list[dict[str, Any]], of: str = "") -> str:
    return share(*saved_of(rows, of))


def saved_of(rows: list[dict[str, Any]], of: str = "") -> tuple[int, int]:
    """Tokens that were saved, and those of before."""
    before = sum(row["report"][f"{of}tokens_before"] for row in rows)
    return before - sum(row["report"][f"{of}tokens_after"] for row in rows), before


def ms_of_100_kb(rows: list[dict[str, Any]]) -> float:
    """Of bodies above 20 KB."""
    large = [row for row in rows if row["bytes"] >= 20_000]
    return float(sum(r["micros"] for r in large) / 1000 / sum(r["bytes"] for r in large) * 1e5)


def missed(half: str, rows: list[dict[str, Any]], with_times: bool) -> list[str]:
    """The bars that a half does not reach, each as a sentence."""
    told = []
    for mode, bar in BARS.items():
        of = [row for row in rows if row["mode"] == mode]
        part, whole = saved_of(of, bar.of)
        facts = sum(row["facts"] for row in of)
        kept = facts - sum(len(row["lost"]) for row in of)
        if part < bar.saved * whole:
            told.append(f"{half}, {mode}: saved {share(part, whole)} of {bar.saved:.0%}")
        if kept < bar.facts * facts:
            told.append(f"{half}, {mode}: kept {kept} of {facts} facts, wanted {bar.facts:.1%}")
        if with_times and bar.ms is not None and (took := ms_of_100_kb(of)) > bar.ms:
            told.append(f"{half}, {mode}: {took:.2f} ms for 100 KB, wanted {bar.ms:g}")
    return told


def print_engines(rows: list[dict[str, Any]]) -> None:
    totals: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        for stage in row["report"]["stages"]:
            total = totals[row["mode"], stage["engine"]]
            total[0] += stage["tokens_before"]
            total[1] += stage["tokens_after"]
            total[2] += stage["micros"]
    print("\n| mode | engine | of its input, saved | ms in all |\n| --- | --- | --- | --- |")
    for (mode, engine), (before, after, micros) in totals.items():
        print(f"| {mode} | {engine} | {share(before - after, before)} | {micros / 1000:.1f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--half", choices=HALVES, action="append")
    parser.add_argument("--lost", action="store_true", help="name the facts that are lost")
    parser.add_argument("--profile", default="release")
    parser.add_argument("--times", action="store_true", help="judge times too")
    parser.add_argument("--hostile", action="store_true", help="texts that are made to be slow")
    options = parser.parse_args()
    if options.hostile:
        return hostile(options.profile)
    told: list[str] = []
    ids: set[str] = set()
    halves = options.half or HALVES
    for half in halves:
        rows = measured(half, options.profile)
        print_half(half, rows, options.lost)
        told += missed(half, rows, options.times)
        ids |= {row["id"] for row in rows}
    if len(halves) == len(HALVES) and len(ids) < CONVERSATIONS_MIN:
        told.append(f"{len(ids)} conversations, wanted {CONVERSATIONS_MIN}")
    print("\n" + "\n".join(f"MISSED {each}" for each in told) if told else "\nevery bar is met")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
