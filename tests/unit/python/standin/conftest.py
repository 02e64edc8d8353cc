"""One running stand-in for the tests of this folder."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.support.tls import NO_AUTHORITIES


@pytest.fixture(scope="session")
def standin_url() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = f"from fairlead.standin.server import serve; serve('127.0.0.1', {port})"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(url, process)
        yield url
    finally:
        process.terminate()
        # Ends by itself on SIGTERM: a stand-in that had to be killed is a defect.
        assert process.wait(3) == 0


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while True:
        assert process.poll() is None, f"the stand-in left with {process.returncode}"
        try:
            if httpx.get(f"{url}/health", timeout=1, verify=NO_AUTHORITIES).status_code == 200:
                return
        except httpx.TransportError:
            assert time.monotonic() < deadline, "the stand-in did not come up"
            time.sleep(0.05)
