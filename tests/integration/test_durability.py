"""D1: what the management API has acknowledged is there, whatever is killed and whenever."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.side_work import SideWork
from tests.support.tls import NO_AUTHORITIES


class Writers(SideWork):
    """Writes keys as fast as it can and keeps what was acknowledged. A context manager."""

    def __init__(self, gateway: Gateway, number: int) -> None:
        self.named: dict[str, str] = {}
        """Acknowledged name of each key that was acknowledged as made."""
        self.deleted: set[str] = set()
        self.in_doubt: set[str] = set()
        """Keys with a write under way when the power went."""
        self._gateway = gateway
        super().__init__(*(partial(self._write, number, lane) for lane in range(2)))

    def _write(self, run: int, lane: int) -> None:
        headers = {"X-Gateway-Cli-Token": self._gateway.cli_token}
        with httpx.Client(
            base_url=self._gateway.url,
            headers=headers,
            trust_env=False,
            timeout=5,
            verify=NO_AUTHORITIES,
        ) as client:
            turn = 0
            while not self.is_over.is_set():
                turn += 1
                try:
                    made = client.post("/api/keys", json={"name": f"made {run} {lane} {turn}"})
                    if made.status_code != 201:
                        continue
                    key = made.json()["id"]
                    self.named[key] = made.json()["name"]
                    self.in_doubt.add(key)  # until every write that follows is acknowledged
                    renamed = client.patch(
                        f"/api/keys/{key}", json={"name": f"renamed {run} {lane} {turn}"}
                    )
                    if renamed.status_code != 200:
                        continue
                    self.named[key] = renamed.json()["name"]
                    if turn % 3 == 0:
                        if client.delete(f"/api/keys/{key}").status_code not in {200, 204}:
                            continue
                        self.deleted.add(key)
                    self.in_doubt.discard(key)
                except httpx.HTTPError:
                    continue  # not acknowledged: nothing was promised


def all_keys(gateway: Gateway) -> dict[str, str]:
    """Name of every key that the gateway lists."""
    found: dict[str, str] = {}
    while True:
        answer: dict[str, Any] = gateway.admin.get(
            "/api/keys", params={"limit": 500, "offset": len(found)}
        ).json()
        page = next(value for value in answer.values() if isinstance(value, list))
        found |= {key["id"]: key["name"] for key in page}
        if not page or len(found) >= answer["total"]:
            return found


def kill_during_writes(gateway: Gateway, run: int) -> None:
    """One run: writes, `kill -9`, restart, and every acknowledged write is there."""
    with Writers(gateway, run) as writers:
        wanted = 6 + run % 7
        eventually(
            lambda: len(writers.named) >= wanted, "keys are written", within_s=20, every_s=0.001
        )
        if run % 2:
            gateway.control.kill()
        else:
            gateway.kill_all()
    if run % 2:
        eventually(gateway.manages, "control is back", within_s=20, every_s=0.1)
        gateway.remember_processes()
    else:
        gateway.start()
    keys = all_keys(gateway)
    for key, name in writers.named.items():
        if key in writers.deleted:
            assert key not in keys, f"run {run}: {name} is back"
        elif key not in writers.in_doubt:
            assert keys.get(key) == name, f"run {run}"
        else:
            # Its last write was never acknowledged: it may have happened or not.
            assert keys.get(key) in {name, name.replace("made", "renamed"), None}, f"run {run}"


def test_acknowledged_writes_survive(gateways: Callable[..., Gateway]) -> None:
    """D1: the power goes during management writes, then control alone dies: all that was acknowledged is there."""
    gateway = gateways()
    for run in range(2):
        kill_during_writes(gateway, run)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_acknowledged_writes_survive_twenty_times(gateways: Callable[..., Gateway]) -> None:
    """D1: twenty times over on the same data directory."""
    gateway = gateways()
    for run in range(20):
        kill_during_writes(gateway, run)
