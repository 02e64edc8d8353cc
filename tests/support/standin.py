"""The stand-in provider as a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import httpx

from tests.support.polling import eventually
from tests.support.process import Process, free_port
from tests.support.tls import NO_AUTHORITIES


@contextlib.contextmanager
def start_standin() -> Iterator[str]:
    """The address of a running stand-in, without `/v1`."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlead", "standin", "--port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _answers(url), "the stand-in answers", within_s=20, every_s=0.05)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            Process.of(process.pid).kill()
            process.wait(5)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False, verify=NO_AUTHORITIES).status_code == 200
    except httpx.HTTPError:
        return False
