"""HAProxy before two nodes of one database, as `deploy/` configures it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.tls import NO_AUTHORITIES

CONFIGURATION = Path(__file__).resolve().parents[2] / "deploy" / "haproxy.cfg"


@dataclass
class Balancer:
    """Made by `start_balancer`. Its nodes are called `one` and `two`."""

    port: int
    socket_path: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def sends_to(self, node: str) -> bool:
        """Whether it sends requests to a node."""
        return self._column("status").get(node) == "UP"

    def served(self) -> dict[str, int]:
        """How many requests each node was sent."""
        return {node: int(count) for node, count in self._column("stot").items()}

    def _column(self, name: str) -> dict[str, str]:
        """A column of HAProxy's statistics, by node."""
        with socket.socket(socket.AF_UNIX) as runtime:
            runtime.settimeout(10)
            runtime.connect(str(self.socket_path))
            runtime.sendall(b"show stat\n")
            text = b"".join(iter(lambda: runtime.recv(65_536), b"")).decode()
        header, *lines = text.removeprefix("# ").splitlines()
        column = header.split(",").index(name)
        rows = [line.split(",") for line in lines]
        return {
            fields[1]: fields[column]
            for fields in rows
            if fields[0] == "nodes" and fields[1] != "BACKEND"
        }


@contextlib.contextmanager
def start_balancer(folder: Path, port: int, one: int, two: int) -> Iterator[Balancer]:
    """HAProxy at a port, before the nodes at two others; a test is skipped where it is not installed."""
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("HAProxy is not installed")
    balancer = Balancer(port, folder / "haproxy.sock")
    environment = {
        "FAIRLEAD_BALANCER": f"127.0.0.1:{balancer.port}",
        "FAIRLEAD_BALANCER_SOCKET": str(balancer.socket_path),
        "FAIRLEAD_NODE_ONE": f"127.0.0.1:{one}",
        "FAIRLEAD_NODE_TWO": f"127.0.0.1:{two}",
    }
    log_path = folder / "haproxy.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [program, "-db", "-f", str(CONFIGURATION)],
            env=os.environ | environment,
            stdout=log,
            stderr=log,
        )

    def answers() -> bool:
        assert process.poll() is None, log_path.read_text()
        with contextlib.suppress(httpx.HTTPError):
            ready = httpx.get(f"{balancer.url}/readyz", timeout=5, verify=NO_AUTHORITIES)
            return ready.status_code == 200
        return False

    try:
        eventually(answers, "HAProxy answers", within_s=20)
        yield balancer
    finally:
        process.terminate()
        process.wait(10)
