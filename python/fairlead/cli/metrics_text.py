"""Samples of Prometheus' text format, as `GET /metrics` answers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_SAMPLE: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([^ ]+)(?: \d+)?")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)",?')
_ESCAPES: Final = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Metrics:
    """The samples of one moment: for each name, values by their labels."""

    families: dict[str, dict[Labels, float]] = field(
        default_factory=lambda: defaultdict(dict[Labels, float])
    )

    def total(self, name: str) -> float:
        """The sum over all labels; 0 where there is no such sample."""
        return sum(self.families.get(name, {}).values())

    def samples(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        """Labels and value of each sample of this name."""
        for labels, value in self.families.get(name, {}).items():
            yield dict(labels), value

    def since(self, earlier: Metrics) -> Metrics:
        """How much counters have grown; one that began again counts from zero."""
        grown = Metrics()
        for name, samples in self.families.items():
            before = earlier.families.get(name, {})
            for labels, value in samples.items():
                was = before.get(labels, 0.0)
                grown.families[name][labels] = value if value < was else value - was
        return grown


def parse_metrics(text: str) -> Metrics:
    """Comments and lines that are no sample are left out."""
    metrics = Metrics()
    for line in text.splitlines():
        found = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        labels = tuple((name, _unescape(raw)) for name, raw in _LABEL.findall(found[2] or ""))
        metrics.families[found[1]][labels] = value
    return metrics


def _unescape(raw: str) -> str:
    return re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), raw)
