"""Contents in a folder: the data directory, or one that nodes share.

A content is written to a temporary name, flushed to the disk and renamed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from fairlead.errors import InvalidRequest, StorageUnavailable
from fairlead.process.fsync import fsync_path
from fairlead.store.blobs.blob import CHUNK_BYTES, Blob
from fairlead.store.owner_bytes import check_disk

PAGE: Final = 1000
_PART: Final = ".part"


class Directory:
    """`Blobs` in a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def work_folder(self) -> Path:
        return self._root

    def path(self, name: str) -> Path:
        return self._root / name

    async def write(self, name: str, chunks: AsyncIterator[bytes], announced: int) -> None:
        path = self.path(name)
        part = _part_of(path)
        size = 0
        try:
            file = await asyncio.to_thread(self._open, part, announced)
            try:
                async for chunk in chunks:
                    if chunk:
                        await asyncio.to_thread(file.write, chunk)
                        size += len(chunk)
                if size != announced:
                    raise InvalidRequest("The upload is incomplete.", param="file")
                await asyncio.to_thread(_keep, file, part, path)
            finally:
                await asyncio.to_thread(file.close)
        except OSError as error:
            await _forget(part)
            raise StorageUnavailable(
                f"The file cannot be written ({error.strerror}).", retry_after_s=30
            ) from None
        except BaseException:
            await _forget(part)
            raise

    async def take(self, name: str, source: Path, *, durably: bool = True) -> int | None:
        return await asyncio.to_thread(self._take, self.path(name), source, durably=durably)

    async def size(self, name: str) -> int | None:
        try:
            return (await asyncio.to_thread(self.path(name).stat)).st_size
        except FileNotFoundError:
            return None

    async def read(
        self, name: str, first: int = 0, last: int | None = None
    ) -> AsyncIterator[bytes]:
        left = None if last is None else last - first + 1
        with await asyncio.to_thread(self.path(name).open, "rb") as file:
            await asyncio.to_thread(file.seek, first)
            while left is None or left > 0:
                most = CHUNK_BYTES if left is None else min(left, CHUNK_BYTES)
                chunk = await asyncio.to_thread(file.read, most)
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk

    async def list(self, folder: str) -> list[Blob]:
        return await asyncio.to_thread(lambda: sorted(self._walk(folder), key=lambda b: b.name))

    async def pages(self, folder: str) -> AsyncIterator[Sequence[Blob]]:
        folders = _folders_in_order(self._root / folder)
        while (found := await asyncio.to_thread(next, folders, None)) is not None:
            at, files = found
            files = sorted(files)
            for first in range(0, len(files), PAGE):
                part = files[first : first + PAGE]
                yield await asyncio.to_thread(list, self._blobs_in(at, part))

    async def remove(self, *names: str) -> None:
        def remove() -> None:
            paths = [self.path(name) for name in names]
            for path in paths:
                path.unlink(missing_ok=True)
            for folder in {path.parent for path in paths}:
                if folder.parent != self._root:
                    with contextlib.suppress(OSError):
                        folder.rmdir()

        await asyncio.to_thread(remove)

    async def forget_unfinished(self, folder: str, before_ms: int) -> None:
        def forget() -> None:
            for blob in self._walk(folder, parts=True):
                if blob.changed_ms < before_ms:
                    self.path(blob.name).unlink(missing_ok=True)

        await asyncio.to_thread(forget)

    async def close(self) -> None:
        return

    def _walk(self, folder: str, *, parts: bool = False) -> Iterator[Blob]:
        for at, files in _folders_in_order(self._root / folder):
            yield from self._blobs_in(at, files, parts=parts)

    def _blobs_in(self, at: Path, files: Sequence[str], *, parts: bool = False) -> Iterator[Blob]:
        for file in files:
            path = at / file
            if (path.suffix == _PART) is not parts:
                continue
            try:
                found = path.stat()
            except FileNotFoundError:
                # Deleted meanwhile.
                continue
            name = path.relative_to(self._root).as_posix()
            yield Blob(name, found.st_size, found.st_mtime_ns // 1_000_000)

    def _open(self, part: Path, announced: int) -> BinaryIO:
        self._make_folder(part.parent)
        check_disk(part.parent, announced)
        return os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def _take(self, path: Path, source: Path, *, durably: bool) -> int | None:
        self._make_folder(path.parent)
        try:
            if durably:
                fsync_path(source)
            # The age of a file here counts from its arrival, whenever it was written.
            os.utime(source)
            _move(source, path, durably=durably)
        except FileNotFoundError:
            pass
        else:
            if durably:
                fsync_path(path.parent)
        return path.stat().st_size if path.exists() else None

    def _make_folder(self, folder: Path) -> None:
        # The root is not made: a shared one that is missing was not mounted.
        at = self._root
        for part in folder.relative_to(self._root).parts:
            at /= part
            at.mkdir(mode=0o700, exist_ok=True)


def _folders_in_order(root: Path) -> Iterator[tuple[Path, Sequence[str]]]:
    """A folder and all below it, each with the names of its files."""
    for at, folders, files in os.walk(root):
        folders.sort()
        yield Path(at), files


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{_PART}")


async def _forget(path: Path) -> None:
    await asyncio.to_thread(lambda: path.unlink(missing_ok=True))


def _move(source: Path, path: Path, *, durably: bool) -> None:
    try:
        source.rename(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # Another file system: the name is given to a copy that is whole.
        part = _part_of(path)
        check_disk(path.parent, source.stat().st_size)
        shutil.copyfile(source, part)
        if durably:
            with part.open("rb+") as file:
                _keep(file, part, path)
        else:
            part.rename(path)
        source.unlink()


def _keep(file: BinaryIO, part: Path, path: Path) -> None:
    file.flush()
    os.fsync(file.fileno())
    part.rename(path)
    fsync_path(path.parent)
