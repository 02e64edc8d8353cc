"""Callers who hold connections up, by slowhttptest: the engine's own listener serves others all the while."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.processes import Gateway, start_gateway
from tests.support.tls import NO_AUTHORITIES

CONNECTIONS, SECONDS = 400, 20
MODES = {
    # Heads that never end; bodies that drip; answers that are read byte by byte, from a tiny window.
    "headers": ["-H", "-i", "2", "-x", "24"],
    "bodies": ["-B", "-i", "2", "-s", "8192", "-x", "10", "-t", "POST", "-f", "application/json"],
    "answers": ["-X", "-w", "10", "-y", "20", "-n", "5", "-z", "5", "-k", "3"],
}


@dataclass
class Probe:
    """Somebody else, who asks for a health page and for a chat all the while, on new connections."""

    gateway: Gateway
    asked: int = 0
    failed: list[str] = field(default_factory=list)
    slowest_s: float = 0.0

    def __post_init__(self) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join(30)

    def _run(self) -> None:
        key = {"Authorization": f"Bearer {self.gateway.key}"}
        while not self._done.wait(0.2):
            began = time.monotonic()
            try:
                with httpx.Client(
                    base_url=self.gateway.url, trust_env=False, timeout=10, verify=NO_AUTHORITIES
                ) as client:
                    health = client.get("/healthz").status_code
                    # A model that nobody serves: admitted, looked for, refused in words.
                    body = {"model": "nobody/m", "messages": [{"role": "user", "content": "hi"}]}
                    chat = client.post(CHAT, json=body, headers=key).status_code
                if (health, chat) != (200, 404):
                    self.failed.append(f"{health}, {chat}")
            except httpx.HTTPError as error:
                self.failed.append(repr(error))
            self.asked += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("mode", MODES)
def test_others_are_served_all_the_while(tmp_path: Path, mode: str) -> None:
    tool = shutil.which("slowhttptest")
    if tool is None:
        pytest.skip("slowhttptest is not installed: apt-get install slowhttptest")
    with start_gateway(tmp_path, FAIRLEAD_FRONT="native") as gateway:
        before = gateway.relay.rss_bytes
        target = gateway.url + (CHAT if mode == "bodies" else "/v1/models")
        command = [tool, "-c", str(CONNECTIONS), "-r", "200", "-l", str(SECONDS), "-p", "5"]
        with Probe(gateway) as probe:
            told = subprocess.run(
                [*command, "-u", target, *MODES[mode]], capture_output=True, text=True, timeout=120
            )
        assert probe.asked > 5, told.stdout[-2000:]
        assert probe.failed == [], probe.failed[:5]
        # The tool asks as well, each few seconds.
        told_plainly = re.sub(r"\x1b\[[0-9;]*m", "", told.stdout)
        found = set(re.findall(r"service available:\s*(\w+)", told_plainly))
        assert found == {"YES"}, told_plainly[-2000:]
        assert gateway.relay.rss_bytes - before < 64 * 2**20
        gateway.assert_keeps_secrets()
