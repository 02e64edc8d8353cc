"""The face of every store of contents (`Blobs`).

A content is whole or not there: what was interrupted is not seen under its name. Names are paths such as
`files/file-1a2b`, of letters, digits, `_`, `-` and `.`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Blob:
    """An existing content. `changed_ms` is by the clock of the store."""

    name: str
    size: int
    changed_ms: int

    @property
    def file(self) -> str:
        """The last part of its name."""
        return self.name.rpartition("/")[2]


class Blobs(Protocol):
    """A store of contents. `StorageUnavailable` when it does not answer or cannot write."""

    @property
    def work_folder(self) -> Path:
        """The folder for unfinished work on this machine: beside the contents, if other nodes share these."""

    async def write(self, name: str, chunks: AsyncIterator[bytes], announced: int) -> None:
        """Writes a content of so many bytes from a stream. `InvalidRequest` where more or fewer come."""

    async def take(self, name: str, source: Path, *, durably: bool = True) -> int | None:
        """Takes over a finished file of this machine, which is gone afterwards, and returns its size; None if it
        is in neither place. Repeatable. If it need not be durable, a folder does not wait for its disk: a power
        failure may lose it.
        """

    async def size(self, name: str) -> int | None:
        """How many bytes a content has; None when there is none."""

    def path(self, name: str) -> Path | None:
        """The path of a content on this machine; None in a remote store."""

    def read(self, name: str, first: int = 0, last: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from the first to the last, both included. `FileNotFoundError`."""

    async def list(self, folder: str) -> list[Blob]:
        """The contents below a folder, in the order of their names."""

    def pages(self, folder: str) -> AsyncIterator[Sequence[Blob]]:
        """The contents below a folder of very many, some at a time: folder by folder, in the order of their names."""

    async def remove(self, *names: str) -> None:
        """Deletes contents; one that is missing is no error. A folder in a folder goes with its last content."""

    async def forget_unfinished(self, folder: str, before_ms: int) -> None:
        """Deletes what is left below a folder of writings that were interrupted and begun before a moment."""

    async def close(self) -> None:
        """Ends connections."""


async def fetch(blobs: Blobs, name: str, target: Path) -> Path:
    """A content as a file of this machine: where it is, or a copy in `target`, which is the caller's to delete.
    `FileNotFoundError`.
    """
    path = blobs.path(name)
    if path is not None:
        return path
    await copy_to(blobs, name, target)
    return target


async def copy_to(blobs: Blobs, name: str, target: Path) -> None:
    """Writes a content into a new file of this machine. `FileNotFoundError`."""
    with await asyncio.to_thread(target.open, "wb") as file:
        async for chunk in blobs.read(name):
            await asyncio.to_thread(file.write, chunk)


async def chunks_of(source: Path) -> AsyncIterator[bytes]:
    """The bytes of a file of this machine."""
    with await asyncio.to_thread(source.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
