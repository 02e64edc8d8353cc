"""What each compression mode saves and keeps, measured on the corpus beside this file.

    python benches/context/run.py [--half first|held_out] [--lost]

Compiles the example `corpus` of the crate for release and prints a table for each half. A fact is kept when its
text is in the strings of the body that would go out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HALVES = ("first", "held_out")
RUN_S = 600


def measured(half: str, profile: str) -> list[dict[str, Any]]:
    """One row for each conversation and mode."""
    command = [
        "cargo",
        "run",
        "--quiet",
        "--locked",
        "--profile",
        profile,
        "-p",
        "fairlead-context",
    ]
    command += ["--example", "corpus", "--", str(HERE / f"{half}.jsonl")]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S, check=True, env=os.environ
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


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
        large = [row for row in of if row["bytes"] >= 20_000]
        cells = [
            mode,
            saved(of),
            *(saved([row for row in of if row["kind"] == kind]) for kind in kinds),
        ]
        cells.append(saved(of, "tool_"))
        cells.append(f"{facts - len(lost)} of {facts} ({share(facts - len(lost), facts)})")
        cells.append(
            f"{sum(r['micros'] for r in large) / 1000 / sum(r['bytes'] for r in large) * 1e5:.2f}"
        )
        cells.append(
            str(sum(len(stage["rejected"]) for row in of for stage in row["report"]["stages"]))
        )
        print("| " + " | ".join(cells) + " |")
        if with_lost:
            for case, fact in dict.fromkeys(lost):
                print(f"    lost in {mode}: {case}: {fact}")
    print_engines(rows)


def saved(rows: list[dict[str, Any]], of: str = "") -> str:
    before = sum(row["report"][f"{of}tokens_before"] for row in rows)
    after = sum(row["report"][f"{of}tokens_after"] for row in rows)
    return share(before - after, before)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--half", choices=HALVES, action="append")
    parser.add_argument("--lost", action="store_true", help="name the facts that are lost")
    parser.add_argument("--profile", default="release")
    options = parser.parse_args()
    for half in options.half or HALVES:
        print_half(half, measured(half, options.profile), options.lost)


if __name__ == "__main__":
    main()
