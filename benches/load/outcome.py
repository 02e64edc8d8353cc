"""Everything that one run found."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from measure import Sample
from streams import OpenStreams


@dataclass(slots=True)
class Outcome:
    """`samples[target][scenario]` holds one sample per round; `left_out` says why for each name."""

    date: str
    machine: dict[str, str]
    conditions: dict[str, str]
    front: str = "granian"
    versions: dict[str, str] = field(default_factory=dict)
    samples: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)
    pss_bytes: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    open_streams: OpenStreams | None = None
    usage_records: tuple[int, int] | None = None
    """Requests in fairlead's usage database, and requests that wrk saw answered."""

    def median(self, target: str, scenario: str, value: Callable[[Sample], float]) -> float | None:
        rounds = self.samples.get(target, {}).get(scenario, [])
        return statistics.median(value(sample) for sample in rounds) if rounds else None

    def per_second(self, target: str, scenario: str) -> float | None:
        return self.median(target, scenario, lambda sample: sample.per_second)

    def p50_us(self, target: str, scenario: str) -> float | None:
        return self.median(target, scenario, lambda sample: sample.p50_us)

    def p99_us(self, target: str, scenario: str) -> float | None:
        return self.median(target, scenario, lambda sample: sample.p99_us)

    def cpu_us(self, target: str, scenario: str) -> float | None:
        """CPU time of the target's whole tree for one request."""
        return self.median(target, scenario, lambda sample: sample.cpu_us_per_request)

    def busiest_cpu_us(self, target: str, scenario: str) -> float | None:
        """Of that, the process that worked most."""
        return self.median(target, scenario, lambda sample: sample.busiest_cpu_us_per_request)

    def bytes_each(self, target: str, scenario: str) -> float | None:
        return self.median(target, scenario, lambda sample: sample.bytes_per_request)

    def rss_bytes(self, target: str) -> int | None:
        """The most that the target's busiest process held after any load."""
        rounds = self.samples.get(target, {}).values()
        return max((sample.rss_bytes for each in rounds for sample in each), default=None)
