"""A shared store that was never there is told of: in the log, in readiness and health, in metrics, by commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.prometheus import read_metrics
from tests.support.shared_store import PASSWORD, shared_store

pytestmark = pytest.mark.one_node(reason="the store of the gateway is the test's own")

GAUGE = "fairlead_shared_store_connected"


def told(gateway: Gateway, *command: str) -> tuple[int, dict[str, Any]]:
    """Exit code and document of a command."""
    at = ["--data-dir", str(gateway.data_dir), "--url", gateway.url]
    done = subprocess.run(
        [sys.executable, "-m", "fairlead", *command, "--json", *at],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


def gauge(gateway: Gateway) -> float | None:
    family = read_metrics(gateway.admin.get("/metrics").text).get(GAUGE)
    return None if family is None or not family.samples else family.value()


def status_of(gateway: Gateway) -> str:
    return str(expect(gateway.admin.get("/api/monitoring/health"), 200)["status"])


def readiness(gateway: Gateway) -> tuple[int, dict[str, Any]]:
    answer = gateway.caller.get("/readyz")
    return answer.status_code, answer.json()


def test_a_wrong_address_is_told_of_at_once(tmp_path: Path) -> None:
    port = free_port()
    url = f"redis://:{PASSWORD}@127.0.0.1:{port}/0"
    with start_gateway(tmp_path, FAIRLEAD_SHARED_URL=url) as gateway:
        gateway.canaries.append(PASSWORD)
        eventually(lambda: status_of(gateway) == "degraded", "health says so", within_s=20)
        warning = "the shared store (FAIRLEAD_SHARED_URL) does not answer"
        lines = [line for line in gateway.log.splitlines() if warning in line]
        assert len(lines) == 1, "once a minute, and not at each try"
        assert f"redis://127.0.0.1:{port}" in lines[0]
        code, ready = readiness(gateway)
        assert (code, ready["shared_store"]) == (200, {"state": "absent"})
        eventually(lambda: gauge(gateway) == 0, "the gauge says so", within_s=20)
        _, found = told(gateway, "doctor", "--no-providers")
        finding = next(each for each in found["findings"] if each["check"] == "shared store")
        assert "FAIRLEAD_SHARED_URL" in finding["fix"]
        assert gateway.caller.post(CHAT, json={"model": "none/m", "messages": []}).status_code < 500


def test_a_store_that_answers_is_told_of_as_well(tmp_path: Path) -> None:
    with (
        shared_store(tmp_path / "store") as store,
        start_gateway(tmp_path, FAIRLEAD_SHARED_URL=store.url) as gateway,
    ):
        gateway.canaries.append(PASSWORD)
        eventually(lambda: status_of(gateway) == "healthy", "health says so", within_s=20)
        eventually(lambda: gauge(gateway) == 1, "the gauge says so", within_s=20)
        assert readiness(gateway)[1]["shared_store"] == {"state": "connected"}
        store.stop()
        eventually(lambda: status_of(gateway) == "degraded", "it went away", within_s=20)
        eventually(lambda: gauge(gateway) == 0, "the gauge says so", within_s=20)
        store.start()
        eventually(lambda: status_of(gateway) == "healthy", "it is back", within_s=20)


def test_without_a_store_nothing_is_said(gateway: Gateway) -> None:
    assert "shared_store" not in readiness(gateway)[1]
    assert gauge(gateway) is None
