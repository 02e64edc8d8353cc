"""Every metric of `GET /metrics`: name, type, meaning, labels. `docs/reference/metrics.md` is made
from this list, and a test compares it with the counters of relay workers
(`rust/engine/src/observe/metrics.rs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. A histogram's samples have the suffixes `_bucket`, `_sum`, `_count`."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


def _family(
    name: str, kind: Literal["counter", "gauge", "histogram"], help_: str, *labels: str
) -> Family:
    return Family(f"fairlead_{name}", kind, help_, labels)


# Counters of relay workers, summed over all workers since control started, including those that
# ended.
COUNTED: Final = (
    _family(
        "http_requests_total",
        "counter",
        "Answers given, by category of endpoint and class of status.",
        "endpoint",
        "status",
    ),
    _family(
        "requests_total",
        "counter",
        "Settled model calls, by category of endpoint and outcome.",
        "endpoint",
        "outcome",
    ),
    _family(
        "request_duration_seconds",
        "histogram",
        "From admission to the last byte of a settled model call.",
        "endpoint",
    ),
    _family(
        "errors_total", "counter", "Settled model calls that failed, by kind of error.", "kind"
    ),
    _family(
        "provider_failures_total",
        "counter",
        "Attempts at providers that failed, by kind of error, whatever came of their requests.",
        "provider",
        "kind",
    ),
    _family(
        "upstream_attempts_total",
        "counter",
        "Calls of providers, those of failed attempts, panels and chains included.",
    ),
    _family(
        "provider_requests_total",
        "counter",
        "Settled model calls by the provider that was tried last, and outcome.",
        "provider",
        "outcome",
    ),
    _family(
        "provider_duration_seconds",
        "histogram",
        "From admission to the last byte, by provider.",
        "provider",
    ),
    _family(
        "provider_first_byte_seconds",
        "histogram",
        "From admission to the first byte of the provider's answer.",
        "provider",
    ),
    _family(
        "tokens_total",
        "counter",
        "Tokens as providers count them; cached and cache_write are parts of input, reasoning of "
        "output.",
        "provider",
        "kind",
    ),
    _family("cost_usd_micros_total", "counter", "What calls cost, in micro-dollars.", "provider"),
    _family(
        "unpriced_requests_total",
        "counter",
        "Requests whose cost is not known, or not all of it: a model has no price. The cost leaves them out.",
        "provider",
    ),
    _family(
        "cache_requests_total",
        "counter",
        "Lookups in the response cache by result: hit_exact, hit_shared, hit_vector, hit_joined, miss, "
        "bypass.",
        "result",
    ),
    _family(
        "cost_saved_usd_micros_total",
        "counter",
        "Cost of the calls that the response cache saved, in micro-dollars.",
    ),
    _family(
        "shared_store_round_trips_total",
        "counter",
        "Questions to the store in which relay workers hold limits together.",
    ),
    _family(
        "shared_store_losses_total",
        "counter",
        "How often that store did not answer, after it had.",
    ),
    _family(
        "shared_cache_lookups_total",
        "counter",
        "Looks for kept answers of other workers in that store by result: hit, miss, failed (late, too), "
        "skipped while it does not answer.",
        "result",
    ),
    _family(
        "shared_cache_writes_total",
        "counter",
        "Kept answers for other workers in that store by result: stored, failed, skipped (too large, or "
        "while it does not answer).",
        "result",
    ),
    _family(
        "guardrail_findings_total",
        "counter",
        "What guardrails found in requests and answers, each kind once a call, by what was done.",
        "guardrail",
        "action",
    ),
    _family(
        "socket_refused_total",
        "counter",
        "Connections that were turned away because there were too many, where the engine itself listens.",
    ),
    _family("shed_total", "counter", "Requests turned away because the gateway was full."),
    _family(
        "spool_lost_records_total",
        "counter",
        "Usage records that were lost because the disk took none for too long.",
    ),
    _family(
        "bodies_lost_total",
        "counter",
        "Exchanges whose bodies were to be kept and are not: the disk is full, or too many wait to be written.",
    ),
)

# Gauges: summed over live relay workers, or of control itself.
STATE: Final = (
    _family("requests_in_flight", "gauge", "Requests under way."),
    _family("open_streams", "gauge", "Streams that are open to callers."),
    _family("buffered_body_bytes", "gauge", "Bytes of request bodies held in memory."),
    _family(
        "spool_unwritten_bytes", "gauge", "Bytes of usage records that the disk has not taken."
    ),
    _family(
        "connections", "gauge", "Provider connections by state, as the workers know them.", "state"
    ),
    _family("workers_live", "gauge", "Relay workers that poll the link."),
    _family(
        "socket_connections",
        "gauge",
        "Connections of callers, where the engine itself listens (`--front native`).",
    ),
    _family(
        "threads_stuck",
        "gauge",
        "Relaying threads that have not moved on for two seconds; `GET /readyz` names them.",
    ),
    _family(
        "shared_store_connected",
        "gauge",
        "1 while the store in which relay workers hold limits together answers every live worker, else 0. Without "
        "`FAIRLEAD_SHARED_URL` it has no sample.",
    ),
    _family(
        "workers_draining",
        "gauge",
        "Relay workers that finish what they have and take nothing new.",
    ),
    _family("snapshot_version", "gauge", "Version of the newest routing configuration."),
    _family(
        "workers_behind",
        "gauge",
        "Live relay workers that have not applied the newest configuration.",
    ),
    _family("spool_segments", "gauge", "Segments of usage records that wait to be taken in."),
    _family("spool_bytes", "gauge", "Bytes of usage records that wait to be taken in."),
    _family(
        "spool_rejected",
        "gauge",
        "Files in `spool/rejected`: usage records that cannot be taken in, and wait for an operator.",
    ),
    _family("storage_fault", "gauge", "1 while a database does not take writes.", "database"),
    _family("task_running", "gauge", "1 while a background task of control runs.", "task"),
    _family(
        "task_restarts_total", "counter", "How often a background task was started again.", "task"
    ),
    _family(
        "trace_spans_total",
        "counter",
        "Spans by what became of them: exported, dropped for want of room, failed at the collector.",
        "result",
    ),
    _family("control_uptime_seconds", "gauge", "How long the control plane runs."),
    _family("build_info", "gauge", "Always 1; the version is in its label.", "version"),
)

FAMILIES: Final = (*COUNTED, *STATE)
