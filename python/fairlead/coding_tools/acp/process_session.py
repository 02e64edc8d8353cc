"""The processes of a tool: its launcher, the tool, and everything that they started.

On Linux the launcher adopts orphans (`adopt_orphans`), so that all of them stay its descendants, also those that left
its session by setsid(2) or whose parent ended. Elsewhere only the launcher's process group is known.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ANONYMOUS: Final = re.compile(rb"^RssAnon:\s+(\d+) kB", re.MULTILINE)
_PR_SET_CHILD_SUBREAPER: Final = 36
# A process that was started while others were stopped is found by the next look; stopped ones start nothing.
_LOOKS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    session: int
    is_zombie: bool


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent ends, by prctl(2). It has to wait for them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def memory_of(leader: int) -> int:
    """Bytes of memory of a tool's processes that they share with nobody; 0 where that cannot be known."""
    found = 0
    for pid in {leader, *_members(leader)}:
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_bytes()
            if match := _ANONYMOUS.search(status):
                found += int(match[1]) * 1024
    return found


def kill_session(leader: int) -> None:
    """Kills the descendants of the launcher and those of its session, then its process group, itself included.

    They are stopped before they are killed, until none is found that runs: one that is stopped starts no other. The
    launcher goes last, since without it its descendants would no longer be known as such.
    """
    stopped: set[int] = set()
    for _ in range(_LOOKS_MAX):
        fresh = _members(leader) - stopped
        if not fresh:
            break
        _signal(fresh, signal.SIGSTOP)
        stopped |= fresh
    _signal(stopped, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _members(leader: int) -> set[int]:
    """Descendants of the leader and members of its session that run, without the leader."""
    processes = _processes()
    children: dict[int, list[int]] = {}
    for each in processes:
        children.setdefault(each.parent, []).append(each.pid)
    found = {each.pid for each in processes if each.session == leader}
    looking = [leader, *found]
    while looking:
        fresh = [pid for pid in children.get(looking.pop(), ()) if pid not in found]
        found.update(fresh)
        looking += fresh
    zombies = {each.pid for each in processes if each.is_zombie}
    return found - zombies - {leader}


def _processes() -> list[_Process]:
    """Every process of this machine, by proc_pid_stat(5); none where the system does not say."""
    if sys.platform != "linux":
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The command's name is in parentheses and may contain anything: after the last one come numbers.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 3:
            is_zombie = fields[0] in {b"Z", b"X"}
            found.append(_Process(int(entry.name), int(fields[1]), int(fields[3]), is_zombie))
    return found
