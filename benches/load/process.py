"""What a tree of processes costs, read from /proc: CPU time and memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU microseconds (user and system) of each process of a tree, by pid."""

    cpu_us: dict[int, int]

    def since(self, before: Usage) -> dict[int, int]:
        """What each process spent since `before`; one that was born meanwhile counts whole."""
        return {pid: us - before.cpu_us.get(pid, 0) for pid, us in self.cpu_us.items()}


def tree(root: int) -> list[int]:
    """`root` and everything below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo.extend(children.get(pid, []))
    return found


def stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat after the name: state, parent, ...; empty if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def usage(root: int) -> Usage:
    spent = {}
    for pid in tree(root):
        if fields := stat(pid):
            spent[pid] = (int(fields[11]) + int(fields[12])) * TICK_US
    return Usage(spent)


def rss_bytes(pid: int) -> int:
    """Resident memory, shared pages counted whole; 0 if the process is gone."""
    return field_bytes(pid, "status", "VmRSS:")


def pss_bytes(root: int) -> int:
    """Memory of the whole tree, pages that several processes share counted once."""
    return sum(field_bytes(pid, "smaps_rollup", "Pss:") for pid in tree(root))


def field_bytes(pid: int, file: str, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text("ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)
