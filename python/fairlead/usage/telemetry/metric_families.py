"""Every metric of `GET /metrics`: name, type, help text, labels. `docs/reference/metrics.md` repeats
this list, and a test compares it with the counters of relay workers
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
        "HTTP answers, by category of endpoint and class of status.",
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
        "Time from admission to the last byte of a settled model call.",
        "endpoint",
    ),
    _family(
        "errors_total", "counter", "Settled model calls that failed, by kind of error.", "kind"
    ),
    _family(
        "provider_failures_total",
        "counter",
        "Failed attempts at providers, by kind of error, even if another attempt of the "
        "request succeeded.",
        "provider",
        "kind",
    ),
    _family(
        "translation_refused_total",
        "counter",
        "Requests that the gateway translated and the provider rejected as invalid. The request log "
        "has the member.",
        "provider",
    ),
    _family(
        "upstream_attempts_total",
        "counter",
        "Calls to providers, including failed attempts and the calls of fusion and "
        "pipeline combos.",
    ),
    _family(
        "provider_requests_total",
        "counter",
        "Settled model calls, by outcome and the provider that was tried last.",
        "provider",
        "outcome",
    ),
    _family(
        "provider_duration_seconds",
        "histogram",
        "Time from admission to the last byte, by provider.",
        "provider",
    ),
    _family(
        "provider_first_byte_seconds",
        "histogram",
        "Time from admission to the first byte of the provider's answer.",
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
    _family("cost_usd_micros_total", "counter", "Cost of calls, in micro-dollars.", "provider"),
    _family(
        "unpriced_requests_total",
        "counter",
        "Requests whose cost is not known, or not all of it: a model has no price. The cost leaves them out.",
        "provider",
    ),
    _family(
        "cache_requests_total",
        "counter",
        "Requests by result of the response cache: hit_exact, hit_shared, hit_vector, "
        "hit_joined, miss, bypass.",
        "result",
    ),
    _family(
        "cost_saved_usd_micros_total",
        "counter",
        "Cost that the response cache saved, in micro-dollars.",
    ),
    _family(
        "shared_store_round_trips_total",
        "counter",
        "Round trips to the store in which relay workers share limits.",
    ),
    _family(
        "shared_store_losses_total",
        "counter",
        "How often the shared store stopped answering.",
    ),
    _family(
        "shared_cache_lookups_total",
        "counter",
        "Lookups of other workers' answers in the shared store, by result: hit, miss, "
        "failed (also too late), skipped (while it does not answer).",
        "result",
    ),
    _family(
        "shared_cache_writes_total",
        "counter",
        "Answers written to the shared store for other workers, by result: stored, "
        "failed, skipped (too large, or while it does not answer).",
        "result",
    ),
    _family(
        "guardrail_findings_total",
        "counter",
        "Findings of guardrails in requests and answers, each kind once a call, by action.",
        "guardrail",
        "action",
    ),
    _family(
        "socket_refused_total",
        "counter",
        "Connections that were refused because there were too many (native front).",
    ),
    _family("shed_total", "counter", "Requests that were refused because the gateway was full."),
    _family(
        "spool_lost_records_total",
        "counter",
        "Usage records that were lost because the disk accepted none for too long.",
    ),
    _family(
        "bodies_lost_total",
        "counter",
        "Requests whose bodies should have been captured but were lost: the disk is "
        "full, or too many bodies wait to be written.",
    ),
)

# Gauges: summed over live relay workers, or of control itself.
STATE: Final = (
    _family("requests_in_flight", "gauge", "Requests in progress."),
    _family("open_streams", "gauge", "Streams that are open to callers."),
    _family("buffered_body_bytes", "gauge", "Bytes of request bodies held in memory."),
    _family("spool_unwritten_bytes", "gauge", "Bytes of usage records that are not yet on disk."),
    _family(
        "connections", "gauge", "Provider connections by state, as the workers know them.", "state"
    ),
    _family("workers_live", "gauge", "Relay workers that poll the link."),
    _family(
        "socket_connections",
        "gauge",
        "Open connections of callers (native front).",
    ),
    _family(
        "threads_stuck",
        "gauge",
        "Relay threads that have made no progress for two seconds; `GET /readyz` names them.",
    ),
    _family(
        "shared_store_connected",
        "gauge",
        "1 while the shared store answers every live worker, else 0. Without "
        "`FAIRLEAD_SHARED_URL` it has no sample.",
    ),
    _family(
        "workers_draining",
        "gauge",
        "Relay workers that finish their requests and accept no new ones.",
    ),
    _family("snapshot_version", "gauge", "Version of the newest routing configuration."),
    _family(
        "workers_behind",
        "gauge",
        "Live relay workers that have not applied the newest configuration.",
    ),
    _family("spool_segments", "gauge", "Segments of usage records that wait to be counted."),
    _family("spool_bytes", "gauge", "Bytes of usage records that wait to be counted."),
    _family(
        "spool_rejected",
        "gauge",
        "Files in `spool/rejected`: usage records that could not be counted and wait for "
        "an operator.",
    ),
    _family("storage_fault", "gauge", "1 while a database does not accept writes.", "database"),
    _family("task_running", "gauge", "1 while a background task of control runs.", "task"),
    _family("task_restarts_total", "counter", "How often a background task was restarted.", "task"),
    _family(
        "trace_spans_total",
        "counter",
        "Spans by result: exported, dropped because the queue was full, failed at the collector.",
        "result",
    ),
    _family("control_uptime_seconds", "gauge", "Seconds since the control plane started."),
    _family("build_info", "gauge", "Always 1; the version is in its label.", "version"),
)

FAMILIES: Final = (*COUNTED, *STATE)
