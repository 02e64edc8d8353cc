"""A strict reader of Prometheus' text format (version 0.0.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL: Final = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE: Final = re.compile(
    rf"({_NAME})(?:\{{((?:{_LABEL})(?:,(?:{_LABEL}))*)\}})? (-?[0-9.eE+-]+|\+Inf|NaN)"
)
_HELP: Final = re.compile(rf"# HELP ({_NAME}) (.+)")
_TYPE: Final = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|histogram)")

Labels = frozenset[tuple[str, str]]


@dataclass
class Family:
    """One metric: what it is, and its samples by name and labels."""

    name: str
    help: str
    kind: str = ""
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def value(self, **labels: str) -> float:
        """The sum of the samples of its own name that have these labels."""
        wanted = set(labels.items())
        return sum(
            v for (name, own), v in self.samples.items() if name == self.name and wanted <= own
        )


def read_metrics(text: str) -> dict[str, Family]:
    """The families by name. Fails on whatever Prometheus would refuse or misread."""
    assert text.endswith("\n"), "the last line is not ended"
    families: dict[str, Family] = {}
    current: Family | None = None
    for line in text.removesuffix("\n").split("\n"):
        if helped := _HELP.fullmatch(line):
            assert helped[1] not in families, f"{helped[1]} is there twice"
            current = families[helped[1]] = Family(helped[1], helped[2])
        elif typed := _TYPE.fullmatch(line):
            assert current is not None
            assert (current.name, current.kind, current.samples) == (typed[1], "", {}), line
            current.kind = typed[2]
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, f"this is no sample: {line!r}"
            assert current is not None
            assert current.kind, f"{line!r} comes before its type"
            _add(current, sample[1], sample[2] or "", float(sample[sample.re.groups]))
    for family in families.values():
        if family.kind == "histogram":
            _check_histogram(family)
        if family.kind in ("counter", "histogram"):
            assert all(value >= 0 for value in family.samples.values()), family.name
    return families


def _add(family: Family, name: str, labels: str, value: float) -> None:
    suffixes = ("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",)
    assert name in {family.name + suffix for suffix in suffixes}, f"{name} in {family.name}"
    pairs = re.findall(_LABEL, labels)
    assert len({key for key, _ in pairs}) == len(pairs), f"a label is there twice: {labels}"
    key = name, frozenset(pairs)
    assert key not in family.samples, f"{name}{{{labels}}} is there twice"
    family.samples[key] = value


def _check_histogram(family: Family) -> None:
    """Buckets grow with their bounds, and the last is the count."""
    series: dict[Labels, list[tuple[float, float]]] = {}
    for (name, labels), value in family.samples.items():
        if name.endswith("_bucket"):
            bound = float(dict(labels)["le"])
            rest = frozenset(pair for pair in labels if pair[0] != "le")
            series.setdefault(rest, []).append((bound, value))
    for rest, buckets in series.items():
        counts = [count for _, count in sorted(buckets)]
        assert counts == sorted(counts), f"{family.name}{dict(rest)}: {counts}"
        assert max(buckets)[0] == float("inf")
        assert counts[-1] == family.samples[f"{family.name}_count", rest]
        assert (f"{family.name}_sum", rest) in family.samples
