"""`GET /metrics`: the counters of all relay workers and the state of control, in Prometheus's
format.

Workers send their counters with each poll of the link, so figures are at most two seconds old and a
scrape costs the relay nothing. Counts of a worker that died stay in the sums. Counters start again
with the control process, as Prometheus expects of a restart.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from fairlead import __version__
from fairlead.store.segment import REASON
from fairlead.store.services import Services, WorkerReport
from fairlead.usage.telemetry.metric_families import FAMILIES, Family
from fairlead.usage.telemetry.reports import merge_reports
from fairlead.usage.telemetry.traces import traces_of

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# Labels come from closed lists and providers, so real ones stay far below this.
SAMPLES_MAX: Final = 50_000
WORKERS_MAX: Final = 1024

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]

_STARTED = time.monotonic()
_STATES = ("active", "cooling", "quota-exhausted", "policy-blocked", "terminal", "deactivated")
_SUFFIXES = ("_bucket", "_sum", "_count")


class RelayCounters:
    """The sums of what relay workers have counted since this process began."""

    def __init__(self) -> None:
        self._sums: dict[Key, float] = {}
        self._last: dict[str, dict[Key, float]] = {}

    def observe(self, worker_id: str, stats: dict[str, Any]) -> None:
        """Adds the counters in a worker's poll. Entries that are no valid samples are left out."""
        samples = dict(_samples(stats))
        before = self._last.pop(worker_id, {})
        for key, value in samples.items():
            grown = value - before.get(key, 0.0)
            if grown > 0 and (key in self._sums or len(self._sums) < SAMPLES_MAX):
                self._sums[key] = self._sums.get(key, 0.0) + grown
        # Ordered by the latest poll, so that the longest silent worker is dropped.
        self._last[worker_id] = {**before, **samples}
        while len(self._last) > WORKERS_MAX:
            del self._last[next(iter(self._last))]

    def sums(self) -> dict[Key, float]:
        """Every sample that was ever above zero."""
        return dict(self._sums)


def _samples(stats: dict[str, Any]) -> Iterator[tuple[Key, float]]:
    for name in ("shed_total", "spool_lost_records", "bodies_lost_total", "socket_refused_total"):
        value = stats.get(name)
        if isinstance(value, int):
            family = name if name.endswith("_total") else f"{name}_total"
            yield (f"fairlead_{family}", ()), float(value)
    samples = stats.get("metrics")
    for sample in samples if isinstance(samples, list) else ():
        try:
            name, labels, value = sample
            yield (
                (str(name), tuple((str(label), str(text)) for label, text in labels)),
                float(value),
            )
        except (TypeError, ValueError):
            continue


def counters_of(services: Services) -> RelayCounters:
    """This process's counters."""
    return services.singleton(RelayCounters, RelayCounters)


def exposition(services: Services) -> str:
    """All metrics as text. It reads the spool's folder, so it must not run on the event loop."""
    samples = counters_of(services).sums()
    for (name, labels), value in _state(services):
        samples[f"fairlead_{name}", labels] = value
    lines: list[str] = []
    by_family: dict[str, list[tuple[Key, float]]] = {}
    known = {family.name: family for family in FAMILIES}
    for key, value in samples.items():
        by_family.setdefault(_family_of(key[0], known), []).append((key, value))
    for family in FAMILIES:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        found = by_family.get(family.name, [])
        if not found and not family.labels and family.kind == "counter":
            found = [((family.name, ()), 0.0)]
        lines += [_line(*key, value) for key, value in sorted(found, key=_order)]
    return "\n".join(lines) + "\n"


def _state(services: Services) -> Iterator[tuple[Key, float]]:
    workers = services.workers()
    live = [worker for worker in workers if worker.live]
    version = services.snapshot_version()
    for name, stat in (
        ("requests_in_flight", "in_flight"),
        ("open_streams", "open_streams"),
        ("buffered_body_bytes", "buffered_body_bytes"),
        ("spool_unwritten_bytes", "spool_unwritten_bytes"),
        ("socket_connections", "socket_connections"),
        ("threads_stuck", "threads_stuck"),
    ):
        yield (name, ()), _total(live, stat)
    states = Counter(report.state for report in merge_reports(live).values())
    for state in _STATES:
        yield ("connections", (("state", state),)), states[state]
    yield ("workers_live", ()), len(live)
    yield ("workers_draining", ()), sum(bool(worker.stats.get("draining")) for worker in live)
    stores = [leases for worker in live if isinstance(leases := worker.stats.get("leases"), dict)]
    if stores:
        yield ("shared_store_connected", ()), float(all(each.get("connected") for each in stores))
    yield ("snapshot_version", ()), version
    yield ("workers_behind", ()), sum(worker.applied_version < version for worker in live)
    segments, size = _spool(services.data_dir / "spool")
    yield ("spool_segments", ()), segments
    yield ("spool_bytes", ()), size
    yield ("spool_rejected", ()), _rejected(services.data_dir / "spool" / "rejected")
    for database in (services.state.database, services.usage):
        fault = float(database.fault is not None)
        yield ("storage_fault", (("database", database.stem),)), fault
    for task in services.tasks():
        yield ("task_running", (("task", task.name),)), float(task.running)
        yield ("task_restarts_total", (("task", task.name),)), task.restarts
    traces = traces_of(services)
    for result in ("exported", "dropped", "failed"):
        yield ("trace_spans_total", (("result", result),)), getattr(traces, result)
    yield ("control_uptime_seconds", ()), round(time.monotonic() - _STARTED, 3)
    yield ("build_info", (("version", __version__),)), 1


def _total(workers: Iterable[WorkerReport], stat: str) -> float:
    values = (worker.stats.get(stat) for worker in workers)
    return float(sum(value for value in values if isinstance(value, int)))


def _spool(folder: Path) -> tuple[int, int]:
    """The number of sealed segments, and their bytes."""
    segments = size = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_file():
                        size += entry.stat().st_size
                        segments += entry.name.endswith(".ndjson")
                except FileNotFoundError:
                    # The segment was ingested meanwhile.
                    continue
    except FileNotFoundError:
        # The folder does not exist before the first worker.
        return 0, 0
    return segments, size


def _rejected(folder: Path) -> int:
    try:
        return sum(path.suffix != REASON for path in folder.iterdir())
    except FileNotFoundError:
        return 0


def _family_of(name: str, known: dict[str, Family]) -> str:
    for suffix in _SUFFIXES:
        family = name.removesuffix(suffix)
        if family != name and family in known and known[family].kind == "histogram":
            return family
    return name


def _order(sample: tuple[Key, float]) -> tuple[Labels, int, float]:
    # Sorts the buckets of a histogram by their bound, then its sum and count.
    (name, labels), _ = sample
    bounds = [float(value) for label, value in labels if label == "le"]
    rest = tuple(pair for pair in labels if pair[0] != "le")
    rank = next((at for at, suffix in enumerate(_SUFFIXES) if name.endswith(suffix)), 0)
    return rest, rank, bounds[0] if bounds else math.inf


def _line(name: str, labels: Labels, value: float) -> str:
    label_text = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    number = str(int(value)) if value == int(value) else repr(value)
    return f"{name}{{{label_text}}} {number}" if label_text else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
