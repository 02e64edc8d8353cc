"""The results of a batch in progress for other nodes, if the store of files is not a shared folder.

New data of the local files is put into the store every second, one piece at a time. A node that takes over the
batch joins the pieces, with its own data: each request in either is done. A killed node therefore loses at most
a second of answers, which are requested again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import orjson

from fairlead.store.blobs.blob import Blobs
from fairlead.store.work_leases import check_lease

FOLDER: Final = "batches"
_ENDINGS: Final = ("output", "errors")


class ResultsCopy:
    """The pieces of one batch, called by one task at a time."""

    def __init__(self, blobs: Blobs, batch_id: str) -> None:
        self._blobs = blobs
        self._batch_id = batch_id
        self._work_folder = blobs.work_folder / FOLDER
        self._sent = dict.fromkeys(_ENDINGS, 0)
        self._is_needed = blobs.path(FOLDER) is None

    async def fetch(self) -> None:
        """Puts the files of this machine together, before the results are opened."""
        if not self._is_needed:
            return
        await asyncio.to_thread(self._work_folder.mkdir, 0o700, exist_ok=True)
        for ending in _ENDINGS:
            pieces = [
                b"".join([chunk async for chunk in self._blobs.read(blob.name)])
                for blob in await self._blobs.list(self._folder_of(ending))
            ]
            if pieces:
                path = self._path(ending)
                self._sent[ending] = await asyncio.to_thread(_put_together, pieces, path)

    async def push(self) -> None:
        """Puts what was added since the last time into the store."""
        if not self._is_needed:
            return
        for ending in _ENDINGS:
            piece = await asyncio.to_thread(
                _whole_lines_after, self._path(ending), self._sent[ending]
            )
            if not piece:
                continue
            check_lease()
            # In the order in which they were made, and under a name that no other node takes.
            name = f"{self._folder_of(ending)}/{self._sent[ending]:015d}-{secrets.token_hex(6)}"
            await self._blobs.write(name, _one(piece), len(piece))
            self._sent[ending] += len(piece)

    async def remove(self) -> None:
        """Deletes the pieces of a batch that has ended."""
        if self._is_needed:
            for ending in _ENDINGS:
                blobs = await self._blobs.list(self._folder_of(ending))
                await self._blobs.remove(*(blob.name for blob in blobs))

    def _folder_of(self, ending: str) -> str:
        return f"{FOLDER}/{self._batch_id}.{ending}"

    def _path(self, ending: str) -> Path:
        return self._work_folder / f"{self._batch_id}.{ending}"


async def _one(piece: bytes) -> AsyncIterator[bytes]:
    yield piece


def _put_together(pieces: list[bytes], path: Path) -> int:
    """Writes the lines of the pieces, and behind them those that only the file has; returns the length of the first."""
    own = path.read_bytes() if path.exists() else b""
    lines: dict[str, bytes] = {}
    for line in b"".join(pieces).splitlines(keepends=True):
        lines.setdefault(orjson.loads(line)["custom_id"], line)
    known = sum(map(len, lines.values()))
    for line in own.splitlines(keepends=True):
        # A crash may have truncated the last line.
        if line.endswith(b"\n"):
            lines.setdefault(orjson.loads(line)["custom_id"], line)
    part = path.with_suffix(f"{path.suffix}.copy")
    part.write_bytes(b"".join(lines.values()))
    part.replace(path)
    return known


def _whole_lines_after(path: Path, offset: int) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        rest = file.read()
    return rest[: rest.rfind(b"\n") + 1]
