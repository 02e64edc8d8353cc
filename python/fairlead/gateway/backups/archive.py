"""The archive of everything: `state.duckdb`, `usage.duckdb` and the contents of files, in one `.tar.gz`.

An archive that comes back may be anybody's: only these names are taken out of it, plain files alone, and no
more bytes than it may have.
"""

from __future__ import annotations

import contextlib
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from fairlead.errors import InvalidRequest
from fairlead.store.owner_bytes import check_disk

DATABASES: Final = ("state.duckdb", "usage.duckdb")
MAGIC: Final = b"\x1f\x8b"
# Databases shrink to a quarter or so, small ones to almost nothing; what grows more than this was made to.
GROWTH_MIN_BYTES: Final = 256 * 1024 * 1024
GROWTH_MAX: Final = 50
_FILE: Final = re.compile(r"files/[A-Za-z0-9_-]{1,64}")
_CHUNK_BYTES: Final = 1024 * 1024
_CHECK_EVERY_BYTES: Final = 64 * 1024 * 1024


def pack(parts: list[tuple[str, Path]], files: Path, target: Path) -> None:
    """Writes the archive of these parts and of the folder of files."""
    target.touch(mode=0o600)
    own: Callable[[tarfile.TarInfo], tarfile.TarInfo] = _anonymous
    with tarfile.open(target, "w:gz", compresslevel=6) as archive:
        for name, part in parts:
            archive.add(part, name, recursive=False, filter=own)
        for path in _contents(files):
            # It may be deleted meanwhile: then the state that was copied has it, and its content is gone.
            with contextlib.suppress(FileNotFoundError):
                archive.add(path, f"files/{path.name}", recursive=False, filter=own)


def files_bytes(files: Path) -> int:
    """How much the folder of files holds."""
    return sum(path.stat().st_size for path in _contents(files))


def is_archive(path: Path) -> bool:
    """Whether the file is compressed as archives are."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def unpack(source: Path, target: Path) -> int:
    """Takes an archive out into a folder that does not exist yet; returns how many files it has. `InvalidRequest`
    for what is no archive of everything.
    """
    most = GROWTH_MIN_BYTES + source.stat().st_size * GROWTH_MAX
    (target / "files").mkdir(mode=0o700, parents=True)
    found: set[str] = set()
    written = 0
    try:
        with tarfile.open(source, "r:gz") as archive:
            for entry in archive:
                name = entry.name
                is_known = name in DATABASES or _FILE.fullmatch(name) is not None
                if not (entry.isreg() and is_known) or name in found:
                    raise _wrong("it holds something that no export has")
                found.add(name)
                written += entry.size
                if written > most:
                    raise _wrong("it is larger than it says")
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


def _contents(files: Path) -> Iterator[Path]:
    if files.is_dir():
        for path in sorted(files.iterdir()):
            if _FILE.fullmatch(f"files/{path.name}") and path.is_file():
                yield path


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o600
    return entry
