"""A tool's processes are found wherever they went: counted, and killed with the tool."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead.coding_tools.acp.process_session import kill_session, memory_of
from tests.support.polling import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

EATEN_BYTES = 40 * 1024 * 1024
# Leaves its session and its parent, eats memory and says who it is.
RUNAWAY = f"""
import os, sys, time
os.setsid()
if os.fork():
    os._exit(0)
os.setsid()
eaten = bytearray(os.urandom(1)) * {EATEN_BYTES}
open(sys.argv[1] + ".part", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(300)
"""
TOOL = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {RUNAWAY!r}, sys.argv[1]]).wait()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
time.sleep(float(sys.argv[2]))
"""


@contextmanager
def tool(report: Path, *, lasts_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """A launcher whose tool starts a process that runs away, and then lives for so long."""
    launcher = [sys.executable, "-P", "-m", "fairlead.coding_tools.acp.launcher", str(os.getpid())]
    command = [*launcher, str(2**31), sys.executable, "-c", TOOL, str(report), str(lasts_s)]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            yield process
        finally:
            kill_session(process.pid)
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(report.read_text()), signal.SIGKILL)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_a_process_that_left_the_session_is_counted_and_killed(tmp_path: Path) -> None:
    report = tmp_path / "pid"
    with tool(report, lasts_s=300) as process:
        eventually(report.exists, "the runaway runs", within_s=30)
        runaway = int(report.read_text())
        assert os.getsid(runaway) != process.pid
        assert memory_of(process.pid) > EATEN_BYTES
        kill_session(process.pid)
        eventually(lambda: not runs(runaway), "the runaway is killed", within_s=10)
        assert process.wait(10) == -signal.SIGKILL


def test_it_ends_with_the_tool(tmp_path: Path) -> None:
    report = tmp_path / "pid"
    with tool(report, lasts_s=0) as process:
        eventually(report.exists, "the runaway runs", within_s=30)
        process.wait(20)
        eventually(lambda: not runs(int(report.read_text())), "the runaway is killed", within_s=10)
