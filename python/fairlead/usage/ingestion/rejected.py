"""The folder `spool/rejected`: lines that are no records, and segments that the database refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import duckdb
import structlog

from fairlead.store.segment import REASON, SEALED

REJECTED_BYTES_MAX: Final = 64 * 1024 * 1024
REASON_MAX_CHARS: Final = 500

log = structlog.get_logger("fairlead.usage")


class Rejected:
    """Sets aside what cannot be taken in, so that it blocks nothing; bounded."""

    def __init__(self, spool_dir: Path) -> None:
        self._spool_dir = spool_dir

    def keep_lines(self, name: str, lines: list[bytes]) -> None:
        """Sets lines of a segment aside. A repeated round writes the same lines under the same name."""
        folder, is_kept = self._folder()
        log.error("lines are no records", segment=name, lines=len(lines), kept=is_kept)
        if is_kept:
            _write(folder / name, b"\n".join(lines) + b"\n")

    def keep_segment(self, name: str, data: bytes, error: duckdb.Error) -> None:
        """Sets a segment aside under its sealed name: once its lines are repaired, it can be moved back into the
        spool.
        """
        folder, is_kept = self._folder()
        reason = str(error).partition("\n")[0][:REASON_MAX_CHARS]
        log.error(
            "segment cannot be taken in",
            segment=name,
            bytes=len(data),
            error=type(error).__name__,
            reason=reason,
            kept=is_kept,
        )
        if is_kept:
            _write(folder / f"{name}{REASON}", reason.encode() + b"\n")
            _write(folder / f"{name}{SEALED}", data)

    def _folder(self) -> tuple[Path, bool]:
        """The folder, and whether it has capacity."""
        folder = self._spool_dir / "rejected"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        used_bytes = sum(entry.stat().st_size for entry in os.scandir(folder))
        return folder, used_bytes < REJECTED_BYTES_MAX


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
