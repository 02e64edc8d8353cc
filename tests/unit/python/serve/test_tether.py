"""A tethered process does not outlive its parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.polling import eventually

# A parent that starts a tethered child, says its process id, and waits to be killed. `darwin` stands
# for every system whose kernel does not do it.
PARENT = """
import os, subprocess, sys
child = "import os, sys, time; sys.platform = '{platform}'; "
child += "from fairlead.serve.tether import tether_to; tether_to(int(sys.argv[1])); "
child += "print('tied', flush=True); time.sleep(60)"
made = subprocess.Popen([sys.executable, "-c", child, str(os.getpid())], stdout=subprocess.PIPE)
made.stdout.readline()
print(made.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("platform", ("linux", "darwin"))
def test_a_child_goes_with_its_killed_parent(platform: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.replace("{platform}", platform)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    eventually(lambda: not is_running(child), "the child is gone")


def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    code = "from fairlead.serve.tether import tether_to; tether_to(1); print('still here')"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=20, check=False
    )
    assert (ended.returncode, ended.stdout) == (-9, b"")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
