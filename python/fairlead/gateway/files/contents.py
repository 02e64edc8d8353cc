"""The contents of files: one file each in the folder `files`, named by its id.

A content is whole or not there: it is written to a temporary name, flushed to the disk and renamed.
A content without a row, left when control was stopped between the two, is deleted at the next
start.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from fairlead.errors import InvalidRequest, StorageUnavailable
from fairlead.store.owner_bytes import check_disk

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STARTED_S = time.time()


class Contents:
    """The folder of contents."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "files"

    def path(self, file_id: str) -> Path:
        """The path of a file's content. `InvalidRequest` for a text that is no file id."""
        if _ID.fullmatch(file_id) is None:
            raise InvalidRequest("That is no file's id.", param="id")
        return self._folder / file_id

    async def write(self, file_id: str, chunks: AsyncIterator[bytes], announced: int) -> int:
        """Writes a content from a stream and returns its size in bytes. An interrupted stream
        leaves nothing.
        """
        path = self.path(file_id)
        part = path.with_suffix(".part")
        size = 0
        try:
            file = await asyncio.to_thread(self._open, part, announced)
            try:
                async for chunk in chunks:
                    if chunk:
                        await asyncio.to_thread(file.write, chunk)
                        size += len(chunk)
                if size != announced:
                    raise InvalidRequest("The upload did not come whole.", param="file")
                await asyncio.to_thread(_keep, file, part, path)
            finally:
                await asyncio.to_thread(file.close)
        except OSError as error:
            await self._forget(part)
            raise StorageUnavailable(
                f"The file cannot be written ({error.strerror}).", retry_after_s=30
            ) from None
        except BaseException:
            await self._forget(part)
            raise
        return size

    async def move_in(self, file_id: str, source: Path) -> int | None:
        """Moves a finished file into the folder and returns its size; None when it is in neither
        place. Repeatable.
        """
        return await asyncio.to_thread(self._move_in, self.path(file_id), source)

    async def remove(self, *file_ids: str) -> None:
        """Deletes contents; one that is missing is no error."""
        for file_id in file_ids:
            await self._forget(self.path(file_id))

    async def sweep(self, known: set[str]) -> None:
        """Deletes contents of earlier processes that have no row."""
        await asyncio.to_thread(self._sweep, known)

    async def _forget(self, path: Path) -> None:
        await asyncio.to_thread(lambda: path.unlink(missing_ok=True))

    def _open(self, part: Path, announced: int) -> BinaryIO:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        check_disk(self._folder, announced)
        return os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def _move_in(self, path: Path, source: Path) -> int | None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if source.exists():
            with source.open("rb") as file:
                os.fsync(file.fileno())
            source.rename(path)
            _sync_folder(path.parent)
        return path.stat().st_size if path.exists() else None

    def _sweep(self, known: set[str]) -> None:
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            is_left = path.name not in known and path.stat().st_mtime < _STARTED_S
            if is_left and path.is_file():
                path.unlink(missing_ok=True)


def new_id(prefix: str) -> str:
    """A random id that cannot be guessed."""
    return f"{prefix}{secrets.token_hex(12)}"


def _keep(file: BinaryIO, part: Path, path: Path) -> None:
    file.flush()
    os.fsync(file.fileno())
    part.rename(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
