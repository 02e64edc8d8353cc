"""The data directory: created, checked and locked for one instance."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from fairlead.errors import Refusal

_OURS: Final = frozenset({"lock", "cli-token", "secret.key", "state.duckdb", "usage.duckdb"})
_OF_THE_SYSTEM: Final = frozenset({"lost+found"})
_SOCKET_PATH_BYTES: Final = 100
"""Below the 108 that Linux and the 104 that others allow."""
_LAST_INSTANCE_ENDS_S: Final = 5.0


class DataDirectory:
    """The locked directory. Leaving the context releases the lock.

    Both planes inherit the lock file's descriptor (`lock_fd`): if the supervisor is killed, the directory stays
    locked until the last of them is gone, so that two instances never write to it.
    """

    def __init__(self, path: Path) -> None:
        """Creates the directory if it is missing and takes the lock. Raises `Refusal`."""
        self.path = path
        _make(path)
        self.lock_fd = _lock(path / "lock")
        self._socket_folder: tempfile.TemporaryDirectory[str] | None = None
        for name in ("run", "spool"):
            (path / name).mkdir(mode=0o700, exist_ok=True)
        self._url_path = path / "run" / "url"

    def control_socket(self) -> Path:
        """The path of control's socket, in a private temporary folder if the usual one is too long."""
        usual = self.path / "run" / "control.sock"
        if len(os.fsencode(usual)) <= _SOCKET_PATH_BYTES:
            return usual
        if self._socket_folder is None:
            self._socket_folder = tempfile.TemporaryDirectory(prefix="fairlead-")
        return Path(self._socket_folder.name) / "control.sock"

    def record_url(self, url: str) -> None:
        """Stores the instance's URL in `run/url`, for the command line."""
        self._url_path.write_text(f"{url}\n", "ascii")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._url_path.unlink(missing_ok=True)
        if self._socket_folder is not None:
            self._socket_folder.cleanup()
        os.close(self.lock_fd)


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = {entry.name for entry in path.iterdir()} - _OF_THE_SYSTEM
        if found and not found & _OURS:
            raise Refusal(
                f"{path} holds other files and is no data directory of fairlead: "
                "name an empty or a new one with --data-dir."
            )
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o700)
    except FileExistsError:
        raise Refusal(f"{path} is not a directory: name another one with --data-dir.") from None
    except OSError as error:
        raise Refusal(
            f"the data directory {path} cannot be used ({error.strerror}): "
            "make it yours and writable, or name another one with --data-dir."
        ) from None


def _lock(path: Path) -> int:
    try:
        lock_fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise Refusal(
            f"{path} cannot be written ({error.strerror}): "
            "make the data directory writable, or name another one with --data-dir."
        ) from None
    deadline_s = time.monotonic() + _LAST_INSTANCE_ENDS_S
    while True:
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                os.close(lock_fd)
                raise Refusal(f"{path} cannot be locked ({error.strerror}).") from None
        holder = _holder(lock_fd)
        # The children of a killed supervisor need a moment to exit.
        if _is_running(holder) or time.monotonic() > deadline_s:
            os.close(lock_fd)
            raise Refusal(
                f"{path.parent} is in use by the fairlead with process id {holder or 'unknown'}: "
                "stop it first, or name another directory with --data-dir."
            )
        time.sleep(0.05)
    os.ftruncate(lock_fd, 0)
    os.pwrite(lock_fd, f"{os.getpid()}\n".encode(), 0)
    return lock_fd


def _holder(lock_fd: int) -> int | None:
    text = os.pread(lock_fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _is_running(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
