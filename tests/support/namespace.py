"""Programs in a network namespace, whose loopback device has whatever addresses a test needs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest


def namespace_works() -> bool:
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    return subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0


needs_namespace = pytest.mark.skipif(
    not namespace_works(), reason="needs unshare with a user namespace, and ip"
)


def run_in_namespace(
    addresses: Iterable[str], program: str, *arguments: str, timeout_s: float
) -> Any:
    """Runs Python source where these addresses are local; returns the JSON on the last line that it prints."""
    devices = [f"ip addr add {address}/32 dev lo" for address in addresses]
    setup = " && ".join(["ip link set lo up", *devices, 'exec "$@"'])
    ended = subprocess.run(
        ["unshare", "-rn", "sh", "-c", setup, "sh", sys.executable, "-c", program, *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])
