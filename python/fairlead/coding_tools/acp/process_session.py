"""The processes of one session (setsid(2)): a tool's launcher, the tool, and what it started."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ANONYMOUS: Final = re.compile(rb"^RssAnon:\s+(\d+) kB", re.MULTILINE)


def memory_of(leader: int) -> int:
    """Bytes of memory of a session's processes that they share with nobody; 0 where that cannot be known."""
    found = 0
    for pid in _members(leader):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_bytes()
            if match := _ANONYMOUS.search(status):
                found += int(match[1]) * 1024
    return found


def kill_session(leader: int) -> None:
    """Kills the process group of the leader, and on Linux before it those of its session that left the group."""
    for pid in _members(leader):
        # The caller may be the leader itself: that goes last, with its group.
        if pid != leader:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _members(leader: int) -> Iterator[int]:
    """Processes of a session, by proc_pid_stat(5)."""
    if sys.platform != "linux":
        return
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The command's name stands in parentheses and may hold anything: what follows the last one is numbers.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 3 and int(fields[3]) == leader:
            yield int(entry.name)
