"""Health tells what is true: of workers, providers, storage and the spool."""

from __future__ import annotations

import os
import time
from typing import Any

import duckdb
import pytest

from fairlead import __version__
from fairlead.errors import StorageUnavailable
from fairlead.gateway.health.process import measure_spool
from fairlead.gateway.health.reports import merge_reports
from fairlead.gateway.providers.catalogue import catalogue
from fairlead.store.services import TaskReport, WorkerReport
from tests.support.management import Management
from tests.support.upstream import ClosedPort

pytestmark = pytest.mark.anyio

PATH = "/api/monitoring/health"


def worker(*connections: dict[str, Any], live: bool = True, **stats: Any) -> WorkerReport:
    return WorkerReport("w1", 42, live, 3, 10, {"connections": list(connections), **stats})


def said(connection_id: str, **fields: Any) -> dict[str, Any]:
    known = {
        "id": connection_id,
        "state": "active",
        "cooling_ms": 0,
        "last_error": None,
        "successes": 1,
        "failures": 0,
        "latency_ms": 10.0,
        "reason": None,
        "until_ms": None,
        "lockouts": [],
        "quota": [],
    }
    return {**known, **fields}


async def make(management: Management, **fields: Any) -> str:
    body = {"provider": "openai", "name": "main", "apiKey": "sk-canary-0123456789", **fields}
    made = await management.ask("POST", "/api/providers", body, expect=201)
    return str(made["connection"]["id"])


def fail_to_write(_: object) -> None:
    raise duckdb.IOException("no space left")


async def test_with_nothing_set_up(management: Management) -> None:
    found = await management.ask("GET", PATH)

    assert found["status"] == "degraded"  # no worker lives
    assert found["version"] == __version__
    assert found["uptimeSeconds"] > 0
    assert found["memoryBytes"] > 1_000_000
    assert found["workers"] == []
    assert found["connectionHealth"] == []
    assert found["spool"] == {"segments": 0, "bytes": 0, "oldestAgeSeconds": None}
    assert found["providerSummary"] == {
        "catalogCount": len(catalogue()),
        "configuredCount": 0,
        "activeCount": 0,
        "monitoredCount": 0,
    }
    assert found["credentialHealth"] == {"ok": 0, "failed": 0, "staleDbNonOkCount": 0}
    assert found["storage"] == {"state": None, "usage": None}


async def test_what_workers_say_is_told(management: Management) -> None:
    connection_id = await make(management)
    await make(management, provider="groq", isActive=False)
    cooling = said(connection_id, state="cooling", cooling_ms=500, last_error="upstream_reset")
    report = worker(cooling, said("deleted"), in_flight=2, open_streams=1, draining=True)
    management.services.workers = lambda: [report]

    found = await management.ask("GET", PATH)

    assert found["status"] == "healthy"
    assert found["providerSummary"]["configuredCount"] == 2
    assert found["providerSummary"]["activeCount"] == 1
    assert found["providerSummary"]["monitoredCount"] == 1
    (one,) = found["workers"]
    assert (one["id"], one["pid"], one["appliedVersion"]) == ("w1", 42, 3)
    assert (one["inFlight"], one["openStreams"], one["draining"]) == (2, 1, True)
    assert found["connectionHealth"] == [
        {
            "id": connection_id,
            "name": "main",
            "provider": "openai",
            "state": "cooling",
            "coolingMs": 500,
            "lastError": "upstream_reset",
            "successes": 1,
            "failures": 0,
            "latencyMs": 10.0,
        }
    ]


async def test_records_that_were_set_aside_are_an_alarm_until_they_are_gone(
    management: Management,
) -> None:
    services = management.services
    services.workers = lambda: [worker()]
    assert (await management.ask("GET", PATH))["status"] == "healthy"
    rejected = services.data_dir / "spool" / "rejected"
    rejected.mkdir(parents=True)
    (rejected / "w-1.ndjson").write_bytes(b"{}\n")
    (rejected / "w-1.reason").write_bytes(b"why\n")

    found = await management.ask("GET", PATH)
    assert (found["status"], found["spool"]["rejected"]) == ("degraded", 1)
    metrics = await management.client.get("/metrics")
    assert "\nfairlead_spool_rejected 1\n" in metrics.text

    for path in rejected.iterdir():
        path.unlink()
    assert (await management.ask("GET", PATH))["status"] == "healthy"


async def test_a_failed_test_is_told_until_traffic_contradicts_it(management: Management) -> None:
    with ClosedPort() as closed:
        elsewhere = {"baseUrl": f"http://127.0.0.1:{closed.port}"}
        connection_id = await make(management, providerSpecificData=elsewhere)
        await management.ask("POST", f"/api/providers/{connection_id}/test")

    credentials = (await management.ask("GET", PATH))["credentialHealth"]
    assert (credentials["ok"], credentials["failed"]) == (0, 1)
    assert credentials["staleDbNonOkCount"] == 0
    (failed,) = credentials["failedConnections"]
    assert (failed["id"], failed["testStatus"]) == (connection_id, "unavailable")
    assert "canary" not in str(credentials)

    management.services.workers = lambda: [worker(said(connection_id))]
    assert (await management.ask("GET", PATH))["credentialHealth"]["staleDbNonOkCount"] == 1


@pytest.mark.parametrize(
    ("fault", "status"), [("task", "degraded"), ("spool", "degraded"), ("storage", "error")]
)
async def test_what_is_wrong_shows(
    management: Management, monkeypatch: pytest.MonkeyPatch, fault: str, status: str
) -> None:
    services = management.services
    services.workers = lambda: [worker()]
    assert (await management.ask("GET", PATH))["status"] == "healthy"

    if fault == "task":
        services.tasks = lambda: [TaskReport("usage.ingest", False, 3, "OSError")]
    elif fault == "storage":
        # Every write fails, so that none of the background tasks' clears the fault.
        monkeypatch.setattr(services.usage._engine, "transact", fail_to_write)
        with pytest.raises(StorageUnavailable):
            await services.usage.write(lambda _: None)
    else:
        # A folder of that name: the ingesting task cannot take it away.
        waiting = services.data_dir / "spool" / "w-0.ndjson"
        waiting.mkdir(parents=True)
        os.utime(waiting, (time.time() - 100, time.time() - 100))

    assert (await management.ask("GET", PATH))["status"] == status


def test_several_workers_are_one_to_the_reader() -> None:
    reports = [
        worker(said("a", successes=3, latency_ms=10.0), said("b", latency_ms=None, successes=0)),
        worker(
            said("a", successes=1, failures=2, latency_ms=30.0, state="cooling", cooling_ms=9),
            said("b", latency_ms=7.0, successes=0, last_error="upstream_timeout"),
        ),
    ]

    merged = merge_reports(reports)

    both = {"successes": 4, "failures": 2, "latency_ms": 15.0, "state": "cooling", "cooling_ms": 9}
    assert merged["a"] == said("a", **both)
    assert merged["b"] == said("b", successes=0, latency_ms=7.0, last_error="upstream_timeout")


def test_the_spool_is_measured(tmp_path: Any) -> None:
    (tmp_path / "w-0.open").write_bytes(b"x" * 100)
    (tmp_path / "w-0.ndjson").write_bytes(b"x" * 10)
    (tmp_path / "w-1.ndjson").write_bytes(b"x" * 5)
    os.utime(tmp_path / "w-0.ndjson", (time.time() - 60, time.time() - 60))

    spool = measure_spool(tmp_path)

    assert (spool.segments, spool.bytes) == (2, 15)
    assert spool.oldest_age_s == pytest.approx(60, abs=5)
    assert measure_spool(tmp_path / "none").oldest_age_s is None
