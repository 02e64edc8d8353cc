"""Segments in the spool: which may be read, and their content.

A sealed segment (`.ndjson`) is whole. An open one (`.open`) belongs to its writer as long as the
writer holds the lock. If the lock can be taken, the writer is gone and the segment may be read,
without a last line that is not whole.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

SEALED = ".ndjson"
OPEN = ".open"
# The suffix of the file that says why the segment beside it was set aside.
REASON = ".reason"

# The size of one round, which keeps the transaction short and memory bounded however long control was
# away.
ROUND_SEGMENTS = 512
ROUND_BYTES = 32 * 1024 * 1024

log = structlog.get_logger("fairlead.usage")


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment's content. `name` is the file's name without its suffix, equal before and after
    sealing.
    """

    name: str
    path: Path
    data: bytes


def read_segments(spool_dir: Path) -> list[Segment]:
    """The next segments in name order, at most one round's work (at least one, however large)."""
    segments: list[Segment] = []
    size = 0
    for path in _listed(spool_dir):
        segment = _read_sealed(path) if path.suffix == SEALED else _adopt(path)
        if segment is None:
            continue
        segments.append(segment)
        size += len(segment.data)
        if _is_full(len(segments), size):
            break
    return segments


def is_full_round(segments: Sequence[Segment]) -> bool:
    """Whether there may be more than these, which `read_segments` found."""
    return _is_full(len(segments), sum(len(segment.data) for segment in segments))


def _is_full(segments: int, size_bytes: int) -> bool:
    return size_bytes >= ROUND_BYTES or segments >= ROUND_SEGMENTS


def has_unread(
    spool_dir: Path, worker: str, before_segment: int, known: frozenset[str] = frozenset()
) -> bool:
    """Whether the spool still has earlier records: segments of this worker before that one, or any
    of workers that are gone. Segments that another living worker is writing do not count, nor any of
    `known` workers.
    """
    for path in _listed(spool_dir):
        writer, _, number = path.stem.rpartition("-")
        if writer in known:
            continue
        if writer == worker and number.isdigit():
            if int(number) < before_segment:
                return True
        elif path.suffix == SEALED or not _is_locked(path):
            return True
    return False


def writers(spool_dir: Path) -> set[str]:
    """The workers that segments in the spool are of."""
    return {path.stem.rpartition("-")[0] for path in _listed(spool_dir)}


def is_free(path: Path) -> bool:
    """Whether there is a file, and nobody has locked it."""
    return path.exists() and not _is_locked(path)


def _is_locked(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # The segment was sealed or ingested after it was listed, so the folder is listed again.
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _listed(spool_dir: Path) -> Iterator[Path]:
    try:
        with os.scandir(spool_dir) as entries:
            names = [entry.name for entry in entries if entry.name.endswith((SEALED, OPEN))]
    except FileNotFoundError:
        # The folder does not exist before the first worker.
        return iter(())
    return (spool_dir / name for name in sorted(names))


def _read_sealed(path: Path) -> Segment | None:
    try:
        return Segment(path.stem, path, path.read_bytes())
    except FileNotFoundError:
        return None


def _adopt(path: Path) -> Segment | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # The segment was sealed after it was listed.
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _still_named(handle, path):
            return None
        with os.fdopen(os.dup(handle), "rb") as file:
            data = file.read()
    except BlockingIOError:
        return None
    finally:
        os.close(handle)
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        log.warning("partial line left out", segment=path.stem, bytes=len(data) - len(whole))
    return Segment(path.stem, path, whole)


def _still_named(handle: int, path: Path) -> bool:
    """Whether the locked file still has its name: its writer may have sealed it and ended in
    between.
    """
    try:
        file = path.stat()
    except FileNotFoundError:
        return False
    ours = os.fstat(handle)
    return (file.st_dev, file.st_ino) == (ours.st_dev, ours.st_ino)
