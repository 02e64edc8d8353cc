"""The archive of everything: `state.duckdb`, `usage.duckdb` and the contents of files, in one `.tar.gz`.

It is taken out again in `unpack.py`.
"""

from __future__ import annotations

import contextlib
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

DATABASES: Final = ("state.duckdb", "usage.duckdb")
MAGIC: Final = b"\x1f\x8b"
# The names of files' contents.
FILE_NAME: Final = re.compile(r"files/[A-Za-z0-9_-]{1,64}")


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


def _contents(files: Path) -> Iterator[Path]:
    if files.is_dir():
        for path in sorted(files.iterdir()):
            if FILE_NAME.fullmatch(f"files/{path.name}") and path.is_file():
                yield path


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o600
    return entry
