"""A file or a folder that is on the disk when the call returns."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes, *, new: Path) -> None:
    """Gives a file, private to its owner, this content: after a crash it is as it was before, or whole.

    It is written at `new`, in the same folder, where what a crash has left goes first.
    """
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    fsync_path(path.parent)


def fsync_path(path: Path) -> None:
    """Waits until the disk has the file's content, or the folder's names."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
