"""Processes, as /proc tells of them, and free ports."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from tests.support.polling import eventually

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """A process, told apart from a later one with the same number by its start time."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(pid, int(_stat(pid)[19]))

    def is_alive(self) -> bool:
        try:
            stat = _stat(self.pid)
        except (FileNotFoundError, ProcessLookupError):
            return False
        return int(stat[19]) == self.started and stat[0] != "Z"

    def signal(self, number: signal.Signals) -> None:
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """`kill -9`, and wait until the process is gone."""
        self.signal(signal.SIGKILL)
        eventually(lambda: not self.is_alive(), f"process {self.pid} is gone")

    @property
    def rss_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    @property
    def fds(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    @property
    def cpu_s(self) -> float:
        stat = _stat(self.pid)
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on (the third of proc(5) is the first here)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def children_of(pid: int) -> list[int]:
    """The living children of a process, without the bookkeeper that multiprocessing starts."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in task.read_text().split()]
    return [child for child in found if "resource_tracker" not in command_line(child)]


def command_line(pid: int) -> str:
    """The arguments of a process, joined by spaces; empty when it is gone."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return text.replace(b"\0", b" ").decode(errors="replace")


def descendants_of(pid: int) -> list[int]:
    try:
        children = children_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return []
    return children + [deeper for child in children for deeper in descendants_of(child)]


def free_port() -> int:
    """A port that is free now and that the kernel will not give to an outgoing connection."""
    for port in random.sample(range(20_300, 32_000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")
