"""Kept bodies of requests and answers: one sealed file for each, named by time, request and key.

Relay workers write them to `spool/bodies`; control moves them to `bodies/<hour>`, of the data directory or of the
store of files, where they are bounded by age and size. In a data directory (`KeptBodies`) both folders are of one file
system, so a move is a renaming. A file has its name once it is whole, and what is left of an interrupted write has
another ending.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HOUR_MS: Final = 3_600_000
FOLDER: Final = "bodies"
# Unfinished files without a worker.
LEFT_AFTER_S: Final = 3600.0

_NAME: Final = re.compile(r"([0-9]{13})_([A-Za-z0-9]+_[A-Za-z0-9]+)_(-|[A-Za-z0-9-]{1,64})\.body")


@dataclass(frozen=True, slots=True)
class BodyName:
    """The request of the bodies; `ts_ms` is when it was admitted (UTC milliseconds)."""

    ts_ms: int
    request_id: str
    key_id: str | None

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{self.ts_ms:013d}_{self.request_id}_{self.key_id or '-'}.body"

    @property
    def sealed_as(self) -> str:
        """The associated data of the sealed content. Callers choose ids of requests, so an id alone could be that of
        another secret.
        """
        return f"kept-body:{self.file}"

    @property
    def hour(self) -> int:
        """The hour whose folder has it, counted from 1970."""
        return self.ts_ms // HOUR_MS

    @property
    def path(self) -> str:
        """The name under which control stores it: below the data directory, or in the store of files."""
        return f"{FOLDER}/{self.hour}/{self.file}"


def parse_name(file: str) -> BodyName | None:
    """The parts of a file's name; None for other files."""
    found = _NAME.fullmatch(file)
    if found is None:
        return None
    return BodyName(int(found[1]), found[2], None if found[3] == "-" else found[3])


@dataclass(slots=True)
class KeptBodies:
    """The two folders of a data directory. All of it blocks; one thread at a time changes them."""

    data_dir: Path
    _bytes: dict[int, int] | None = field(default=None)
    """The size of each hour's folder; None before the first look."""

    @property
    def spool(self) -> Path:
        """The folder for relay workers."""
        return spool_of(self.data_dir)

    @property
    def folder(self) -> Path:
        """The folder for control."""
        return self.data_dir / FOLDER

    def find(self, name: BodyName) -> bytes | None:
        """The sealed content, wherever it is."""
        stored_path = self._path(name)
        # A move between two looks is found by the third.
        for path in (stored_path, self.spool / name.file, stored_path):
            with contextlib.suppress(FileNotFoundError):
                return path.read_bytes()
        return None

    def has(self, name: BodyName) -> bool:
        """Whether there is such a content."""
        return self._path(name).exists() or (self.spool / name.file).exists()

    def take_in(self) -> set[str]:
        """Moves what workers have written; returns the keys that it is of."""
        sizes = self._sizes()
        keys: set[str] = set()
        for path, name in body_files(self.spool):
            target = self._path(name)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            size = path.stat().st_size
            path.rename(target)
            sizes[name.hour] = sizes.get(name.hour, 0) + size
            if name.key_id is not None:
                keys.add(name.key_id)
        forget_parts(self.spool)
        return keys

    def total_bytes(self) -> int:
        """The number of stored bytes; rejected bodies are not counted."""
        return sum(self._sizes().values())

    def delete_before(self, before_ms: int) -> int:
        """Deletes everything admitted before this time (UTC milliseconds); returns the number."""
        last = before_ms // HOUR_MS
        hours = [hour for hour in self._sizes() if hour <= last]
        return self._delete(hours, lambda name: name.ts_ms < before_ms)

    def delete_of_others(self, key_ids: Collection[str]) -> int:
        """Deletes everything of keys other than these; returns the number."""
        known = frozenset(key_ids)
        return self._delete(
            list(self._sizes()), lambda name: name.key_id is not None and name.key_id not in known
        )

    def delete_surplus(self, limit_bytes: int) -> int:
        """Deletes the oldest until at most so many bytes are left; returns how many."""
        deleted = 0
        for hour in sorted(self._sizes()):
            surplus = self.total_bytes() - limit_bytes
            if surplus <= 0:
                break
            for path, _ in sorted(body_files(self.folder / str(hour))):
                if surplus <= 0:
                    break
                surplus -= path.stat().st_size
                path.unlink(missing_ok=True)
                deleted += 1
            self._measure(hour)
        return deleted

    def _path(self, name: BodyName) -> Path:
        return self.data_dir / name.path

    def _delete(self, hours: list[int], goes: Callable[[BodyName], bool]) -> int:
        deleted = 0
        for path, name in body_files(self.spool):
            if goes(name):
                path.unlink(missing_ok=True)
                deleted += 1
        for hour in hours:
            before = deleted
            for path, name in body_files(self.folder / str(hour)):
                if goes(name):
                    path.unlink(missing_ok=True)
                    deleted += 1
            if deleted > before:
                self._measure(hour)
        return deleted

    def _sizes(self) -> dict[int, int]:
        if self._bytes is None:
            self._bytes = {}
            with contextlib.suppress(FileNotFoundError):
                for entry in self.folder.iterdir():
                    if entry.name.isdecimal():
                        self._measure(int(entry.name))
        return self._bytes

    def _measure(self, hour: int) -> None:
        folder = self.folder / str(hour)
        size = sum(path.stat().st_size for path, _ in body_files(folder))
        sizes = self._sizes()
        sizes[hour] = size
        if size == 0:
            sizes.pop(hour)
            # A folder that holds something else stays.
            with contextlib.suppress(OSError):
                folder.rmdir()


def spool_of(data_dir: Path) -> Path:
    """The folder in which the relay workers of a data directory write."""
    return data_dir / "spool" / FOLDER


def forget_parts(spool: Path) -> None:
    """Deletes the files of interrupted writes. Blocking."""
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(spool):
            is_left = entry.name.endswith(".new") and (
                entry.stat().st_mtime < time.time() - LEFT_AFTER_S
            )
            if is_left:
                Path(entry.path).unlink(missing_ok=True)


def body_files(folder: Path) -> Iterator[tuple[Path, BodyName]]:
    """The files of a folder that are bodies. Blocking."""
    try:
        paths = list(folder.iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        name = parse_name(path.name)
        if name is not None:
            yield path, name
