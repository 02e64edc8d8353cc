"""Taking an archive out: `python -m fairlead.gateway.backups.unpack <archive> <folder>`.

An uploaded archive is untrusted. Only the names of an export are extracted, only plain files, with limits on
their bytes, their number and the headers that describe them. Extraction runs in a separate process with limited
memory, because the library reads some headers completely.

The process prints the number of files as JSON. It ends with 2 where the archive is refused, with a sentence on its
error output, and with 3 where the disk has no room.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import resource
import sys
import tarfile
import zlib
from pathlib import Path
from typing import IO, Final, Self

from fairlead.errors import InvalidRequest, StorageFull, StorageUnavailable
from fairlead.gateway.backups.archive import DATABASES, FILE_NAME
from fairlead.process.minimal_environment import minimal_environment
from fairlead.store.owner_bytes import check_disk

# Databases shrink to a quarter or so, small ones to almost nothing; what grows more than this was made to.
GROWTH_MIN_BYTES: Final = 256 * 1024 * 1024
GROWTH_MAX: Final = 50
# Each file takes an inode, whatever it holds. An id is chance, so an entry takes some compressed bytes at least.
ENTRIES_MAX: Final = 50_000
ENTRIES_FREE: Final = 500
ENTRY_MIN_BYTES: Final = 24
# Names and attributes that do not fit the plain header. An export has none.
HEADER_MAX_BYTES: Final = 64 * 1024
HEADERS_MAX_BYTES: Final = 1024 * 1024
MEMORY_MAX_BYTES: Final = 768 * 1024 * 1024
UNPACK_DEADLINE_S: Final = 900.0
_CHUNK_BYTES: Final = 1024 * 1024
_CHECK_EVERY_BYTES: Final = 64 * 1024 * 1024
_LONG_HEADERS: Final = frozenset(
    [
        *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE),
        *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    ]
)
# In KiB. By default the allocator of the Rust side reserves 1 GiB of addresses, more than the process may have.
_ENVIRONMENT: Final = {"MIMALLOC_ARENA_RESERVE": "32768"}
_REFUSED, _FULL = 2, 3


async def unpack_apart(source: Path, target: Path) -> int:
    """Extracts an archive into a folder that does not exist yet, in a separate process; returns the number of its
    files. Raises `InvalidRequest` for anything but a complete export, `StorageFull`, and `StorageUnavailable`
    if it takes too long.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead.gateway.backups.unpack", str(source), str(target)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=minimal_environment(**_ENVIRONMENT),
    )
    try:
        async with asyncio.timeout(UNPACK_DEADLINE_S):
            output, refused = await process.communicate()
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise StorageUnavailable("The archive could not be read in time.") from None
        raise
    if process.returncode == 0:
        return int(json.loads(output))
    sentence = (refused.decode(errors="replace").strip().splitlines() or [""])[-1]
    if process.returncode == _REFUSED:
        raise InvalidRequest(sentence)
    if process.returncode == _FULL:
        raise StorageFull(sentence)
    raise _wrong("it takes more memory to read than an export does, or is damaged")


class _Bounded(tarfile.TarInfo):
    """An entry whose long headers are refused before they are read."""

    def _proc_member(self, archive: _Archive) -> Self:
        if self.type in _LONG_HEADERS:
            archive.headers_bytes += self.size
            if self.size > HEADER_MAX_BYTES or archive.headers_bytes > HEADERS_MAX_BYTES:
                raise _wrong("it has longer headers than any export")
        # The library's hook for kinds of entries.
        member: Self = super()._proc_member(archive)  # type: ignore[misc]
        return member


class _Archive(tarfile.TarFile):
    """An archive whose long headers are bounded, one by one and together."""

    tarinfo = _Bounded
    headers_bytes = 0


def unpack(source: Path, target: Path) -> int:
    """`unpack_apart` in this process."""
    size = source.stat().st_size
    most = GROWTH_MIN_BYTES + size * GROWTH_MAX
    most_entries = min(ENTRIES_MAX, ENTRIES_FREE + size // ENTRY_MIN_BYTES)
    (target / "files").mkdir(mode=0o700, parents=True)
    found: set[str] = set()
    written = 0
    try:
        with _Archive.open(source, "r:gz") as archive:
            for entry in archive:
                # The library keeps every entry that it has read.
                archive.members = []  # type: ignore[attr-defined]
                name = entry.name
                is_known = name in DATABASES or FILE_NAME.fullmatch(name) is not None
                if not (entry.isreg() and is_known) or name in found:
                    raise _wrong("it holds something that no export has")
                found.add(name)
                if len(found) > most_entries:
                    raise _wrong("it holds more files than an export of its size")
                written += entry.size
                if written > most:
                    raise _wrong("it is larger than its stated size")
                content = archive.extractfile(entry)
                if content is not None:
                    _take_out(content, target / name)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, tarfile.TarError) and error.errno:
            raise
        raise _wrong("it is damaged, or no .tar.gz") from None
    if not found.issuperset(DATABASES):
        raise _wrong("state.duckdb or usage.duckdb is missing in it")
    return len(found) - len(DATABASES)


def _take_out(content: IO[bytes], target: Path) -> None:
    target.touch(mode=0o600)
    unchecked = 0
    with target.open("wb") as out:
        while chunk := content.read(_CHUNK_BYTES):
            if unchecked <= 0:
                check_disk(target.parent, _CHECK_EVERY_BYTES)
                unchecked = _CHECK_EVERY_BYTES
            unchecked -= out.write(chunk)


def _wrong(reason: str) -> InvalidRequest:
    return InvalidRequest(f"The archive cannot be restored: {reason}. Nothing was changed.")


def _main() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_MAX_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_MAX_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        files = unpack(Path(sys.argv[1]), Path(sys.argv[2]))
    except InvalidRequest as refusal:
        sys.stderr.write(f"{refusal.message}\n")
        return _REFUSED
    except StorageFull as refusal:
        sys.stderr.write(f"{refusal.message}\n")
        return _FULL
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.stderr.write("The disk of the data directory has no room for the archive.\n")
        return _FULL
    except MemoryError:
        # There may be no memory left for an answer.
        os._exit(1)
    sys.stdout.write(json.dumps(files))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
