"""`/api/monitoring/health`."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter

from fairlead import __version__
from fairlead.errors import StorageUnavailable
from fairlead.gateway.health.credentials import (
    FAILED_SHOWN,
    CredentialHealth,
    StoredConnection,
    assess_credentials,
    read_connections,
)
from fairlead.gateway.health.process import Spool, measure_spool, memory_bytes, uptime_s
from fairlead.gateway.health.reports import merge_reports
from fairlead.gateway.health.views import (
    ConnectionHealthView,
    CredentialHealthView,
    FailedConnection,
    HealthView,
    LeasesView,
    ProviderSummary,
    SpoolView,
    TaskView,
    WorkerView,
)
from fairlead.gateway.providers.catalogue import catalogue
from fairlead.moment import moment_of, now_ms
from fairlead.store.services import Services, ServicesDep, WorkerReport

router = APIRouter(prefix="/api/monitoring", tags=["monitoring"])

# Segments that wait longer than this mean that ingestion is stuck.
SPOOL_LATE_S = 30.0


@router.get(
    "/health",
    summary="Health of the gateway and its providers",
    response_model_exclude_defaults=True,
)
async def health(services: ServicesDep) -> HealthView:
    # Health must answer while storage fails: that is when it matters.
    try:
        connections = await services.state.read(read_connections)
    except StorageUnavailable:
        connections = []
    spool = await asyncio.to_thread(measure_spool, services.data_dir / "spool")
    workers = services.workers()
    live = merge_reports(report for report in workers if report.live)
    at_ms = now_ms()
    return HealthView.model_construct(
        status=_status(services, workers, spool),
        timestamp=moment_of(at_ms),
        version=__version__,
        uptime_seconds=round(uptime_s(), 3),
        snapshot_version=services.snapshot_version(),
        provider_summary=_summary(connections, live),
        credential_health=_credentials(assess_credentials(connections, live, at_ms)),
        workers=[_worker(report) for report in workers],
        tasks=[
            TaskView.model_construct(
                name=t.name, running=t.running, restarts=t.restarts, last_error=t.last_error
            )
            for t in services.tasks()
        ],
        connection_health=[
            _connection(each, live[each.id]) for each in connections if each.id in live
        ],
        spool=SpoolView.model_construct(
            segments=spool.segments,
            bytes=spool.bytes,
            oldest_age_seconds=spool.oldest_age_s,
            rejected=spool.rejected,
        ),
        storage={"state": services.state.database.fault, "usage": services.usage.fault},
        memory_bytes=memory_bytes(),
    )


def _status(
    services: Services, workers: list[WorkerReport], spool: Spool
) -> Literal["healthy", "degraded", "error"]:
    if services.state.database.fault or services.usage.fault:
        return "error"
    late = spool.oldest_age_s is not None and spool.oldest_age_s > SPOOL_LATE_S
    if spool.rejected or not all(_reaches_store(worker) for worker in workers if worker.live):
        return "degraded"
    if late or not any(w.live for w in workers) or not all(t.running for t in services.tasks()):
        return "degraded"
    return "healthy"


def _reaches_store(report: WorkerReport) -> bool:
    """Whether the shared store answers the worker; true where none is configured."""
    leases = report.stats.get("leases")
    return leases is None or bool(leases.get("connected"))


def _summary(
    connections: list[StoredConnection], live: dict[str, dict[str, Any]]
) -> ProviderSummary:
    return ProviderSummary.model_construct(
        catalog_count=len(catalogue()),
        configured_count=len({each.provider for each in connections}),
        active_count=len({each.provider for each in connections if each.is_active}),
        monitored_count=len({each.provider for each in connections if each.id in live}),
    )


def _credentials(found: CredentialHealth) -> CredentialHealthView:
    failed = [
        FailedConnection.model_construct(
            id=each.id,
            name=each.name,
            provider=each.provider,
            test_status=each.test_status,
            last_error=each.last_error,
            last_error_at=None
            if each.last_error_at_ms is None
            else moment_of(each.last_error_at_ms),
        )
        for each in found.failed[:FAILED_SHOWN]
    ]
    return CredentialHealthView.model_construct(
        ok=found.ok,
        failed=len(found.failed),
        failed_connections=failed or None,
        stale_db_non_ok_count=found.stale,
    )


def _worker(report: WorkerReport) -> WorkerView:
    stats = report.stats
    return WorkerView.model_construct(
        id=report.worker_id,
        pid=report.pid,
        live=report.live,
        applied_version=report.applied_version,
        heard_ms_ago=report.age_ms,
        in_flight=stats.get("in_flight", 0),
        open_streams=stats.get("open_streams", 0),
        requests_total=stats.get("requests_total", 0),
        shed_total=stats.get("shed_total", 0),
        draining=stats.get("draining", False),
        leases=LeasesView.model_construct(**leases) if (leases := stats.get("leases")) else None,
    )


def _connection(stored: StoredConnection, report: dict[str, Any]) -> ConnectionHealthView:
    return ConnectionHealthView.model_construct(
        id=stored.id,
        name=stored.name,
        provider=stored.provider,
        reason=report.get("reason"),
        until=None if report.get("until_ms") is None else moment_of(report["until_ms"]),
        **{
            name: report[name]
            for name in ("state", "cooling_ms", "last_error", "successes", "failures", "latency_ms")
        },
    )
