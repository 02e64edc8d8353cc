"""Figures of control's own process, and of the spool that it reads usage from."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

_STARTED = time.monotonic()


@dataclass(frozen=True, slots=True)
class Spool:
    """Sealed segments that wait to be ingested: how many, their bytes, the age of the oldest (None
    when there is none). `rejected` counts segments and files of lines that were set aside
    because they cannot be ingested.
    """

    segments: int
    bytes: int
    oldest_age_s: float | None
    rejected: int


def uptime_s() -> float:
    """Seconds since this process began; where the system does not report it, since it was first asked.

    This module is imported with the first request for health, so its own clock would begin then.
    """
    try:
        began_ticks = int(Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19])
        running_s = float(Path("/proc/uptime").read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return time.monotonic() - _STARTED
    return max(running_s - began_ticks / os.sysconf("SC_CLK_TCK"), 0.0)


def memory_bytes() -> int:
    """Resident memory of this process; where the system does not report it, its highest so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure_spool(spool_dir: Path) -> Spool:
    """Measures the segments that wait in the spool. Blocking."""
    sizes: list[int] = []
    oldest_ns: int | None = None
    try:
        entries = list(os.scandir(spool_dir))
    except FileNotFoundError:
        entries = []
    for entry in entries:
        if not entry.name.endswith(".ndjson"):
            continue
        try:
            about = entry.stat()
        except FileNotFoundError:
            # The segment was ingested after it was listed.
            continue
        sizes.append(about.st_size)
        oldest_ns = min(about.st_mtime_ns, oldest_ns or about.st_mtime_ns)
    age_s = None if oldest_ns is None else max(time.time_ns() - oldest_ns, 0) / 1e9
    return Spool(len(sizes), sum(sizes), age_s, count_rejected(spool_dir))


def count_rejected(spool_dir: Path) -> int:
    """Counts files of usage records that cannot be ingested and wait for an operator. Blocking."""
    try:
        return sum(path.suffix != ".reason" for path in (spool_dir / "rejected").iterdir())
    except FileNotFoundError:
        return 0
