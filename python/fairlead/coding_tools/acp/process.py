"""A tool's process: started in a session of its own with nothing of the gateway's, measured, and killed with all that
it started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

LINE_BYTES: Final = 16 * 1024 * 1024
"""The longest message of a tool."""
_ANONYMOUS: Final = re.compile(rb"^RssAnon:\s+(\d+) kB", re.MULTILINE)
_LAUNCHER: Final = "fairlead.coding_tools.acp.launcher"


async def start_process(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], memory_bytes: int
) -> asyncio.subprocess.Process:
    """Starts a program by its path. `OSError` where the launcher cannot be started; a program that cannot be run ends
    at once.
    """
    own = [sys.executable, "-P", "-m", _LAUNCHER, str(os.getpid()), str(memory_bytes)]
    return await asyncio.create_subprocess_exec(
        *own,
        *command,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # What a tool writes there quotes its conversation, which belongs in no log.
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        limit=LINE_BYTES,
    )


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
    """Kills the process group of the leader, and on Linux those of its session that left the group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for pid in _members(leader):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


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
