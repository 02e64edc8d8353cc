"""What choosing targets and looking for an idempotent twin cost, without Python and without a network."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

Benchmark = Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ["cargo", "run", "--release", "--quiet", "--locked", "--package", "fairlead-engine"]
# 50 combos of 20 targets, 1,000 keys.
DECISION_MOST_US = 20.0
IDEMPOTENCY_MOST_US = 2.0


def test_decisions(benchmark: Benchmark, capsys: Any) -> None:
    """Each figure is the least of seven rounds; what is timed around them is the whole run."""
    subprocess.run(
        [*COMMAND[:1], "build", *COMMAND[2:], "--example", "decisions"], check=True, cwd=ROOT
    )
    ran = benchmark.pedantic(
        lambda: subprocess.run(
            [*COMMAND, "--example", "decisions"],
            check=True,
            cwd=ROOT,
            capture_output=True,
            text=True,
        ),
        rounds=1,
    )
    figures = {one["name"]: one["us"] for one in map(json.loads, ran.stdout.splitlines())}
    benchmark.extra_info.update(figures)
    with capsys.disabled():
        print()
        for name, us in figures.items():
            print(f"{name:>48}: {us:7.3f} us")
    decisions = {name: us for name, us in figures.items() if name.startswith("decision ")}
    assert len(decisions) > 15
    assert max(decisions.values()) <= DECISION_MOST_US, decisions
    (check,) = (us for name, us in figures.items() if name.startswith("idempotency"))
    assert check <= IDEMPOTENCY_MOST_US
