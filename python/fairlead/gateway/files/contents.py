"""The contents of files: below `files/` in the store of contents, named by the file's id.

A content without a row is what a crash between the two left. It is deleted once it is so old that nobody can be
about to write its row: where nodes share a store, what is young may be another's upload.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from fairlead.errors import InvalidRequest
from fairlead.store.blobs.blob import Blobs, fetch
from fairlead.store.blobs.location import blobs_of
from fairlead.store.services import Services

FOLDER: Final = "files"
# Longer than an upload may be silent and a batch may take to end, and than clocks of nodes differ.
STRAY_AFTER_MS: Final = 3_600_000
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Contents:
    """The contents of files in a store."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    @property
    def work_folder(self) -> Path:
        """The folder for unfinished work on files."""
        return self._blobs.work_folder

    def path(self, file_id: str) -> Path | None:
        """The path of a content on this machine; None in a remote store. Raises `InvalidRequest` for a text that
        is no file id.
        """
        return self._blobs.path(_name_of(file_id))

    async def write(self, file_id: str, chunks: AsyncIterator[bytes], announced: int) -> int:
        """Writes a content from a stream and returns its size in bytes. An interrupted stream
        leaves nothing.
        """
        await self._blobs.write(_name_of(file_id), chunks, announced)
        return announced

    async def move_in(self, file_id: str, source: Path) -> int | None:
        """Takes over a finished file of this machine and returns its size; None when it is in neither
        place. Repeatable.
        """
        return await self._blobs.take(_name_of(file_id), source)

    async def size(self, file_id: str) -> int | None:
        """How many bytes a content has; None when there is none."""
        return await self._blobs.size(_name_of(file_id))

    def read(self, file_id: str, first: int = 0, last: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from the first to the last, both included. `FileNotFoundError`."""
        return self._blobs.read(_name_of(file_id), first, last)

    async def fetch(self, file_id: str, target: Path) -> Path:
        """A content as a file of this machine: where it is, or a copy in `target`. `FileNotFoundError`."""
        return await fetch(self._blobs, _name_of(file_id), target)

    async def remove(self, *file_ids: str) -> None:
        """Deletes contents; one that is missing is no error."""
        await self._blobs.remove(*map(_name_of, file_ids))

    async def bring_in(self, data_dir: Path) -> int:
        """Takes over contents that are in the data directory, from before the store was elsewhere or from a restored
        archive; returns how many.
        """
        if not (data_dir / FOLDER).is_dir() or self._blobs.path(FOLDER) == data_dir / FOLDER:
            return 0
        count = 0
        for path in list((data_dir / FOLDER).iterdir()):
            if _ID.fullmatch(path.name) and path.is_file():
                await self._blobs.take(f"{FOLDER}/{path.name}", path)
                count += 1
        return count

    async def forget_strays(self, known: Callable[[], Awaitable[set[str]]], at_ms: int) -> int:
        """Deletes what has been there for long without a row at this moment, and writings that were interrupted;
        returns how many contents. `known` asks for the ids of all rows.
        """
        before_ms = at_ms - STRAY_AFTER_MS
        await self._blobs.forget_unfinished(FOLDER, before_ms)
        old = [
            blob.file
            for blob in await self._blobs.list(FOLDER)
            if blob.changed_ms < before_ms and _ID.fullmatch(blob.file)
        ]
        # Asked afterwards: whatever is that old and has a row has it by now.
        strays = set(old) - await known() if old else set()
        await self.remove(*strays)
        return len(strays)


def contents_of(services: Services) -> Contents:
    """The contents of files in the process's store."""
    return Contents(blobs_of(services))


def new_id(prefix: str) -> str:
    """A random id that cannot be guessed."""
    return f"{prefix}{secrets.token_hex(12)}"


def _name_of(file_id: str) -> str:
    if _ID.fullmatch(file_id) is None:
        raise InvalidRequest("That is no file's id.", param="id")
    return f"{FOLDER}/{file_id}"
