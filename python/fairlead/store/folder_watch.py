"""Notifications of the kernel about changes in a folder (inotify, on Linux)."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
from pathlib import Path
from typing import Final

_IN_CLOSE_WRITE: Final = 0x8
_IN_MOVED_TO: Final = 0x80
_EVENTS_BYTES: Final = 65_536


class FolderWatch:
    """Sets `changed` when a file of the folder is renamed into place, or closed by who wrote it,
    which the kernel also does for a writer that was killed.
    """

    def __init__(self, folder: Path) -> None:
        """Raises `OSError` where folders cannot be watched, or there is no such folder."""
        if sys.platform != "linux":
            raise OSError("there is no inotify here")
        self.changed = asyncio.Event()
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        path = os.fsencode(folder)
        if libc.inotify_add_watch(self._handle, path, _IN_CLOSE_WRITE | _IN_MOVED_TO) < 0:
            error = OSError(ctypes.get_errno(), "inotify_add_watch")
            os.close(self._handle)
            raise error
        asyncio.get_running_loop().add_reader(self._handle, self._read)

    def close(self) -> None:
        """Ends the watch."""
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)

    def _read(self) -> None:
        # The events have no content: the waiting task reads the folder.
        with contextlib.suppress(BlockingIOError):
            os.read(self._handle, _EVENTS_BYTES)
        self.changed.set()
