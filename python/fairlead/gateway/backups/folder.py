"""The folder `<data-dir>/backups`: finished copies of the state, newest first, and copies that are
being written.

A copy gets its final name only once it is whole and flushed to the disk.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast, get_args

from fairlead.moment import moment_of, now_ms

Reason = Literal["manual", "scheduled", "pre-restore"]

DAY_MS: Final = 86_400_000

_NAME = re.compile(rf"state-([0-9]{{13}})-([0-9a-f]{{6}})-({'|'.join(get_args(Reason))})\.duckdb")


@dataclass(frozen=True, slots=True)
class Retention:
    """Which copies stay: the newest `count`, and of these the ones that are at most `days` old (0 is
    any age). The newest of all stays whatever its age.
    """

    count: int
    days: int


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished copy of the state. `size` is in bytes."""

    id: str
    path: Path
    created_at_ms: int
    size: int
    reason: Reason


class Folder:
    """The backup folder of one data directory (mode 0700)."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "backups"

    def new_file(self) -> Path:
        """The path of a new temporary file, for a copy that is being written."""
        self._path.mkdir(mode=0o700, exist_ok=True)
        return self._path / f"{secrets.token_hex(8)}.part"

    def keep(self, part: Path, reason: Reason) -> Backup:
        """Gives a written copy its final name."""
        with part.open("rb") as file:
            os.fsync(file.fileno())
        at_ms = now_ms()
        path = self._path / f"state-{at_ms:013d}-{secrets.token_hex(3)}-{reason}.duckdb"
        part.rename(path)
        handle = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        return self.list()[0]

    def prune(self, retention: Retention, at_ms: int) -> list[Backup]:
        """Deletes the copies that do not stay at this moment (UTC milliseconds); returns them."""
        kept = self.list()
        oldest_ms = at_ms - retention.days * DAY_MS if retention.days else 0
        old = [
            backup
            for place, backup in enumerate(kept)
            if place >= retention.count or (place > 0 and backup.created_at_ms < oldest_ms)
        ]
        for backup in old:
            backup.path.unlink(missing_ok=True)
        return old

    def list(self) -> list[Backup]:
        """The finished copies, newest first."""
        found = []
        for path in self._path.glob("*.duckdb"):
            name = _NAME.fullmatch(path.name)
            if name is not None:
                size = path.stat().st_size
                found.append(Backup(path.stem, path, int(name[1]), size, cast("Reason", name[3])))
        return sorted(found, key=lambda backup: backup.id, reverse=True)

    def find(self, backup_id: str) -> Backup | None:
        """The copy with this id, or None."""
        return next((each for each in self.list() if each.id == backup_id), None)

    def discard(self, part: Path) -> None:
        """Deletes a temporary file, and the files that opening it as a database left beside it."""
        for path in self._path.glob(f"{part.name}*"):
            path.unlink(missing_ok=True)


def shown_name(at_ms: int, suffix: str) -> str:
    """The file name that a download is given."""
    return f"fairlead-{moment_of(at_ms):%Y%m%d-%H%M%S}{suffix}"
