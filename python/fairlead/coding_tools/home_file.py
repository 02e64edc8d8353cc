"""Files below a user's home: reached without following links, replaced whole or not at all.

Every folder on the way is opened from the one before it, so that nobody can put a link in its place between a check
and its use. A file is written beside the old one, flushed, renamed over it, and its folder flushed: a process killed at
any point leaves the old file or the new one. Writers of one folder take turns by a lock on the folder itself, which
leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOCK_WAIT_S: Final = 10.0
_LOCK_POLL_S: Final = 0.02
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SECRET_MODE: Final = 0o600


class UnsafeFile(Exception):
    """A path that is not written to; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was read; `content` and `mode` are None where there is none."""

    content: bytes | None
    mode: int | None = None
    identity: tuple[int, int, int] | None = None
    """Inode, size and time of the last change, by which a change in between is noticed."""

    @property
    def digest(self) -> str | None:
        return None if self.content is None else hashlib.sha256(self.content).hexdigest()


class HomeFile:
    """One file of a home; `path` is relative, without `..`."""

    def __init__(self, home: Path, path: str) -> None:
        self._home = home
        self._parts = Path(path).parts
        if Path(path).is_absolute() or ".." in self._parts or not self._parts:
            raise UnsafeFile(f"{path} is not a path below the home directory.")
        self.path = home / path

    def read(self) -> FileState:
        """The file as it is now. Raises `UnsafeFile` for links and files of others."""
        with contextlib.ExitStack() as stack:
            try:
                folder = self._open_folder(stack, make=False)
            except FileNotFoundError:
                return FileState(None)
            return read_in(folder, self.path)

    @contextmanager
    def locked(self) -> Iterator[LockedFile]:
        """The file, while no other writer of this kind may change it. Makes its folder."""
        with contextlib.ExitStack() as stack:
            folder = self._open_folder(stack, make=True)
            _lock(folder, self.path)
            yield LockedFile(self.path, folder, read_in(folder, self.path))

    def _open_folder(self, stack: contextlib.ExitStack, *, make: bool) -> int:
        fd = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, fd)
        place = self._home
        for part in self._parts[:-1]:
            place /= part
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=fd)
            try:
                fd = os.open(part, _FOLDER, dir_fd=fd)
            except OSError as error:
                raise _as_unsafe(error, place) from None
            stack.callback(os.close, fd)
            _check_owner(os.fstat(fd), place)
        return fd


@dataclass(frozen=True, slots=True)
class LockedFile:
    """A file whose folder is locked: `state` is what it was when the lock was taken."""

    path: Path
    folder: int
    state: FileState

    def beside(self, path: Path) -> LockedFile:
        """Another file of the same folder, under the same lock."""
        return LockedFile(path, self.folder, read_in(self.folder, path))

    def replace(self, content: bytes, mode: int) -> None:
        """Puts a new file in the place of the old one. Raises `UnsafeFile` if somebody changed it meanwhile."""
        name = f".{self.path.name}.{secrets.token_hex(6)}.fairlead"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, SECRET_MODE, dir_fd=self.folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            self._check_unchanged()
            os.rename(name, self.path.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self.folder)
            raise
        os.fsync(self.folder)

    def remove(self) -> None:
        """Removes the file, if it exists."""
        self._check_unchanged()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path.name, dir_fd=self.folder)
        os.fsync(self.folder)

    def _check_unchanged(self) -> None:
        if read_in(self.folder, self.path).identity != self.state.identity:
            raise UnsafeFile(f"{self.path} was changed by another program just now: try again.")


def read_in(folder: int, path: Path) -> FileState:
    """The file of this name in an open folder. Raises `UnsafeFile` for links and files of others."""
    # Not to wait for a writer where somebody has put a pipe in the file's place.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(path.name, flags, dir_fd=folder)
    except FileNotFoundError:
        return FileState(None)
    except OSError as error:
        raise _as_unsafe(error, path) from None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeFile(f"{path} is not a file: move it away.")
        _check_owner(status, path)
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        return FileState(file.read(), stat.S_IMODE(status.st_mode), identity)


def _check_owner(status: os.stat_result, path: Path) -> None:
    if status.st_uid != os.geteuid():
        raise UnsafeFile(
            f"{path} belongs to another user (id {status.st_uid}): run this as that user, or take it over."
        )


def _as_unsafe(error: OSError, path: Path) -> OSError | UnsafeFile:
    if isinstance(error, FileNotFoundError):
        return error
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return UnsafeFile(
            f"{path} is a symbolic link or no folder, and is not followed: configure the file that it leads to by hand."
        )
    return UnsafeFile(f"{path} cannot be opened: {error.strerror}.")


def _lock(folder: int, path: Path) -> None:
    give_up = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise UnsafeFile(
                    f"{path} is being written by another fairlead: try again."
                ) from None
            time.sleep(_LOCK_POLL_S)
        else:
            return
