"""Finished copies of the state, newest first, below `backups/` in the store of contents, and copies that are
being written, in `<data-dir>/backups`.

A copy gets its final name only once it is whole and stored.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast, get_args

from fairlead.moment import moment_of, now_ms
from fairlead.store.blobs.blob import Blobs, copy_to

Reason = Literal["manual", "scheduled", "pre-restore"]

DAY_MS: Final = 86_400_000
FOLDER: Final = "backups"

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
    created_at_ms: int
    size: int
    reason: Reason

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{self.id}.duckdb"


class Folder:
    """The stored copies, and unfinished ones in the data directory's folder (mode 0700)."""

    def __init__(self, data_dir: Path, blobs: Blobs) -> None:
        self._path = data_dir / FOLDER
        self._blobs = blobs

    def new_file(self) -> Path:
        """The path of a new temporary file, for a copy that is being written."""
        self._path.mkdir(mode=0o700, exist_ok=True)
        return self._path / f"{secrets.token_hex(8)}.part"

    def new_folder(self) -> Path:
        """A new temporary folder."""
        self._path.mkdir(mode=0o700, exist_ok=True)
        folder = self._path / f"{secrets.token_hex(8)}.copies"
        folder.mkdir(mode=0o700)
        return folder

    async def keep(self, part: Path, reason: Reason) -> Backup:
        """Gives a written copy its final name."""
        at_ms = now_ms()
        backup_id = f"state-{at_ms:013d}-{secrets.token_hex(3)}-{reason}"
        size = await self._blobs.take(f"{FOLDER}/{backup_id}.duckdb", part)
        return Backup(backup_id, at_ms, size or 0, reason)

    async def copy(self, backup: Backup, part: Path) -> None:
        """Writes what is kept into a temporary file. `FileNotFoundError`."""
        await copy_to(self._blobs, f"{FOLDER}/{backup.file}", part)

    async def delete(self, *backups: Backup) -> None:
        """Deletes copies."""
        await self._blobs.remove(*(f"{FOLDER}/{backup.file}" for backup in backups))

    async def prune(self, retention: Retention, at_ms: int) -> list[Backup]:
        """Deletes the copies that do not stay at this moment (UTC milliseconds); returns them."""
        backups = await self.list()
        oldest_ms = at_ms - retention.days * DAY_MS if retention.days else 0
        old = [
            backup
            for place, backup in enumerate(backups)
            if place >= retention.count or (place > 0 and backup.created_at_ms < oldest_ms)
        ]
        await self.delete(*old)
        return old

    async def list(self) -> list[Backup]:
        """The finished copies, newest first."""
        found = []
        for blob in await self._blobs.list(FOLDER):
            name = _NAME.fullmatch(blob.file)
            if name is not None:
                backup_id = blob.file.removesuffix(".duckdb")
                reason = cast("Reason", name[3])
                found.append(Backup(backup_id, int(name[1]), blob.size, reason))
        return sorted(found, key=lambda backup: backup.id, reverse=True)

    async def find(self, backup_id: str) -> Backup | None:
        """The copy with this id, or None."""
        return next((each for each in await self.list() if each.id == backup_id), None)

    def discard(self, part: Path) -> None:
        """Deletes a temporary file, and the files that opening it as a database left beside it."""
        for path in self._path.glob(f"{part.name}*"):
            path.unlink(missing_ok=True)


def shown_name(at_ms: int, suffix: str) -> str:
    """The file name that a download is given."""
    return f"fairlead-{moment_of(at_ms):%Y%m%d-%H%M%S}{suffix}"
