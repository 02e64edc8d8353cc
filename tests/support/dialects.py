"""The stand-in provider behind a gateway, once in each dialect that it speaks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.support.polling import eventually
from tests.support.process import Process, free_port
from tests.support.processes import Gateway

DIALECTS = ("openai", "openai-responses", "anthropic", "gemini")
_BASES = {"gemini": "/v1beta"}


@contextmanager
def standin_in_each_dialect(gateway: Gateway) -> Iterator[dict[str, str]]:
    """A stand-in of its own: the prefix of its models for each dialect."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlead", "standin", "--port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _answers(port), "the stand-in answers", within_s=30)
        prefixes = {}
        for dialect in DIALECTS:
            prefix = f"{dialect}-standin{port}"
            base_url = f"http://127.0.0.1:{port}{_BASES.get(dialect, '/v1')}"
            node = gateway.add_node(prefix, base_url, dialect=dialect)
            gateway.add_connection(node["id"], f"sk-{dialect}-standin-canary")
            prefixes[dialect] = prefix
        yield prefixes
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            Process.of(process.pid).kill()
            process.wait(5)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v1/models", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
