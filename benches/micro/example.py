"""Runs an example of the engine that prints its figures, one JSON object a line: `{"name": ..., "us": ...}`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CARGO = ["cargo", "--quiet"]
OPTIONS = ["--release", "--locked", "--package", "fairlead-engine", "--example"]


def run(example: str, benchmark: Any, capsys: Any) -> dict[str, float]:
    """The figures by name, in microseconds; they are printed and kept with the benchmark, which times the whole run."""
    subprocess.run([*CARGO, "build", *OPTIONS, example], check=True, cwd=ROOT)
    command = [*CARGO, "run", *OPTIONS, example]
    ran = benchmark.pedantic(
        lambda: subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True),
        rounds=1,
    )
    figures = {one["name"]: one["us"] for one in map(json.loads, ran.stdout.splitlines())}
    benchmark.extra_info.update(figures)
    with capsys.disabled():
        print()
        for name, us in figures.items():
            print(f"{name:>48}: {us:10.3f} us")
    return figures
