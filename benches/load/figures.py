"""Figures of a script that measures one part of fairlead: a table in `benches/results`, with every round beside it."""

from __future__ import annotations

import datetime as dt
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from others import ROOT

FOLDER = ROOT / "benches" / "results"


@dataclass(slots=True)
class Round:
    """What one round came to."""

    per_second: float
    p99_us: float
    failed: int = 0
    cpu_us: float | None = None
    """Of the process, for each request."""


@dataclass(slots=True)
class Figure:
    """One thing that is asked for. A goal is met by the best round: it is what the machine can do, and the others say
    how quiet it was.
    """

    name: str
    goal_per_second: float | None = None
    goal_p99_us: float | None = None
    rounds: list[Round] = field(default_factory=list)

    @property
    def best_per_second(self) -> float:
        return max(each.per_second for each in self.rounds)

    @property
    def best_p99_us(self) -> float:
        return min(each.p99_us for each in self.rounds)

    @property
    def is_met(self) -> bool:
        return (
            not any(each.failed for each in self.rounds)
            and (self.goal_per_second is None or self.best_per_second >= self.goal_per_second)
            and (self.goal_p99_us is None or self.best_p99_us <= self.goal_p99_us)
        )


def page(title: str, machine: dict[str, str], conditions: str, figures: list[Figure]) -> str:
    """The table, in Markdown."""
    lines = [
        f"# {title}",
        "",
        _where(machine) + f" {conditions}",
        "",
        "| | best a second | goal | best p99 | goal | CPU each | failed | every round |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for figure in figures:
        cpus = [each.cpu_us for each in figure.rounds if each.cpu_us is not None]
        every = ", ".join(f"{r.per_second:.0f}/s {r.p99_us / 1000:.1f} ms" for r in figure.rounds)
        cells = (
            figure.name,
            f"{figure.best_per_second:.0f}",
            "" if figure.goal_per_second is None else f"{figure.goal_per_second:.0f}",
            f"{figure.best_p99_us / 1000:.1f} ms",
            "" if figure.goal_p99_us is None else f"{figure.goal_p99_us / 1000:.0f} ms",
            f"{min(cpus):.0f} us" if cpus else "",
            str(sum(each.failed for each in figure.rounds)),
            every,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _where(machine: dict[str, str]) -> str:
    date = dt.datetime.now(dt.UTC).date().isoformat()
    return (
        f"{date}, {machine['processor']}, {machine['cores']} cores shared by everything; "
        f"one-minute load {os.getloadavg()[0]:.1f} at the end."
    )


def keep(
    name: str, title: str, machine: dict[str, str], conditions: str, figures: list[Figure]
) -> Path:
    """Writes the page and the rounds; the page's path."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    date = dt.datetime.now(dt.UTC).date().isoformat()
    stem = FOLDER / f"{date}-{machine['kind']}-{name}"
    raw: dict[str, Any] = {
        "date": date,
        "machine": machine,
        "conditions": conditions,
        "figures": [asdict(figure) for figure in figures],
    }
    stem.with_suffix(".json").write_text(json.dumps(raw, indent=1) + "\n", "utf-8")
    stem.with_suffix(".md").write_text(page(title, machine, conditions, figures), "utf-8")
    return stem.with_suffix(".md")
