"""What an answer of `GET /v1/models` costs with 20,000 models, without Python and without a network."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

Benchmark = Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ["cargo", "run", "--release", "--quiet", "--locked", "--package", "fairlead-engine"]
ANSWER_MOST_US = 1_000.0


def test_models(benchmark: Benchmark, capsys: Any) -> None:
    """Each figure is the least of fifty calls; what is timed around them is the whole run."""
    subprocess.run(
        [*COMMAND[:1], "build", *COMMAND[2:], "--example", "models"], check=True, cwd=ROOT
    )
    ran = benchmark.pedantic(
        lambda: subprocess.run(
            [*COMMAND, "--example", "models"],
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
            print(f"{name:>48}: {us:10.1f} us")
    answers = {name: us for name, us in figures.items() if name.startswith("answer: ")}
    assert len(answers) == 5
    assert max(answers.values()) <= ANSWER_MOST_US, answers
