"""Health as the API shows it."""

from __future__ import annotations

from typing import Literal

from fairlead.moment import Time
from fairlead.wire import Wire


class ProviderSummary(Wire):
    """Providers: in the catalogue, with a connection, with an active one, with one that workers
    report on.
    """

    catalog_count: int
    configured_count: int
    active_count: int
    monitored_count: int


class FailedConnection(Wire):
    id: str
    name: str
    provider: str
    test_status: str | None
    last_error: str | None
    last_error_at: Time | None


class CredentialHealthView(Wire):
    """Active connections by their last test. `failedConnections` is present if `failed` is not 0."""

    ok: int
    failed: int
    failed_connections: list[FailedConnection] | None = None
    stale_db_non_ok_count: int


class LeasesView(Wire):
    """Leases of a worker under limits that it holds together with others: whether the store answers
    (`connected`), the workers that it hears of, limits, questions to the store and how often it was lost.
    """

    connected: bool
    nodes: list[str]
    limits: int
    limits_in_use: int
    round_trips: int
    losses: int


class WorkerView(Wire):
    id: str
    pid: int
    live: bool
    applied_version: int
    heard_ms_ago: int
    in_flight: int
    open_streams: int
    requests_total: int
    shed_total: int
    draining: bool
    leases: LeasesView | None = None


class TaskView(Wire):
    name: str
    running: bool
    restarts: int
    last_error: str | None


class ConnectionHealthView(Wire):
    """Over all live workers: sums of counts, the longest cooldown, the mean latency."""

    id: str
    name: str
    provider: str
    state: str
    reason: str | None = None
    until: Time | None = None
    cooling_ms: int
    last_error: str | None
    successes: int
    failures: int
    latency_ms: float | None


class SpoolView(Wire):
    segments: int
    bytes: int
    oldest_age_seconds: float | None
    rejected: int = 0


class HealthView(Wire):
    """`degraded`: no live worker, a background task down, usage that waits too long, or usage records
    that were set aside because they cannot be taken in; `error`: storage fails.
    """

    status: Literal["healthy", "degraded", "error"]
    timestamp: Time
    version: str
    uptime_seconds: float
    snapshot_version: int
    provider_summary: ProviderSummary
    credential_health: CredentialHealthView
    workers: list[WorkerView]
    tasks: list[TaskView]
    connection_health: list[ConnectionHealthView]
    spool: SpoolView
    storage: dict[str, str | None]
    memory_bytes: int
