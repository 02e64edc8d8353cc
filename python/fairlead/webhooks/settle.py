"""The effect of attempts on deliveries and endpoints, in one transaction for all that ended
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.moment import iso, moment_of
from fairlead.net.egress import host_and_port
from fairlead.records.webhook_endpoints import Endpoint, endpoints_by_id, update_endpoint
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.work_leases import Lease, kept_tokens
from fairlead.webhooks.attempt import Answer
from fairlead.webhooks.due_deliveries import DueDelivery
from fairlead.webhooks.schedule import next_attempt_at_ms

DISABLE_AFTER_MS: Final = 5 * 24 * 3_600_000
# Statuses by which a listener, or a proxy before it, asks for fewer requests.
THROTTLING: Final = frozenset({429, 502, 503, 504})
THROTTLE_MS: Final = 5000

ENDPOINT_DISABLED: Final = "endpoint_disabled"

_SETTLE = """
UPDATE webhook_deliveries AS d SET
    state = r.state, attempts = d.attempts + 1, tries = d.tries + 1,
    next_attempt_at_ms = r.next_attempt_at_ms, finished_at_ms = r.finished_at_ms,
    status = r.status, error = r.error, latency_ms = r.latency_ms
FROM (
    SELECT unnest(?::VARCHAR[]) AS id, unnest(?::VARCHAR[]) AS state,
        unnest(?::BIGINT[]) AS next_attempt_at_ms, unnest(?::BIGINT[]) AS finished_at_ms,
        unnest(?::INTEGER[]) AS status, unnest(?::VARCHAR[]) AS error,
        unnest(?::FLOAT8[]) AS latency_ms
) AS r
WHERE d.id = r.id
"""
# Joined with the deliveries, because one may have been deleted meanwhile.
_ATTEMPTS = """
INSERT INTO webhook_attempts (delivery_id, endpoint_id, number, at_ms, latency_ms, status, error)
SELECT d.id, d.endpoint_id, d.attempts, r.at_ms, d.latency_ms, d.status, d.error
FROM webhook_deliveries d JOIN (
    SELECT unnest(?::VARCHAR[]) AS id, unnest(?::BIGINT[]) AS at_ms
) AS r ON d.id = r.id
"""


@dataclass(frozen=True, slots=True)
class FinishedAttempt:
    """An attempt that ended at `at_ms`."""

    due: DueDelivery
    answer: Answer
    at_ms: int
    lease: Lease | None = None
    """The right to deliver to its endpoint, where several controls share a database."""


def settle(
    con: Connection, ended: Sequence[FinishedAttempt], spread: Callable[[float, float], float]
) -> list[Endpoint]:
    """Stores the result for each delivery and endpoint, in the writer. Returns the endpoints that were disabled by
    it. The new holder of an endpoint sends its deliveries again, and stores that.
    """
    ended = _still_ours(con, ended)
    if not ended:
        return []
    rows = [_row(each, spread) for each in ended]
    con.execute(_SETTLE, [list(column) for column in zip(*rows, strict=True)])
    con.execute(_ATTEMPTS, [[each.due.id for each in ended], [each.answer.at_ms for each in ended]])
    disabled = []
    before = endpoints_by_id(con, list({each.due.endpoint_id for each in ended}))
    for endpoint in before.values():
        after = endpoint
        for each in ended:
            if each.due.endpoint_id == endpoint.id:
                after = _judged(after, each)
        if after == endpoint:
            continue
        update_endpoint(con, after)
        if after.state != endpoint.state:
            _end_pending(con, after)
            disabled.append(after)
    return disabled


def _still_ours(con: Connection, ended: Sequence[FinishedAttempt]) -> Sequence[FinishedAttempt]:
    leases = [each.lease for each in ended if each.lease is not None]
    if not leases:
        return ended
    valid = kept_tokens(con, leases)
    return [each for each in ended if each.lease is None or each.lease.token in valid]


def _row(ended: FinishedAttempt, spread: Callable[[float, float], float]) -> tuple[Any, ...]:
    answer, due = ended.answer, ended.due
    next_at_ms: int | None = None
    if answer.error is not None:
        next_at_ms = next_attempt_at_ms(
            due.tries + 1, ended.at_ms, due.expires_at_ms, answer.retry_after_s, spread
        )
    is_over = next_at_ms is None
    state = "delivered" if answer.error is None else "failed" if is_over else "pending"
    return (
        due.id,
        state,
        ended.at_ms if next_at_ms is None else next_at_ms,
        ended.at_ms if is_over else None,
        answer.status,
        answer.error,
        answer.latency_ms,
    )


def _judged(endpoint: Endpoint, ended: FinishedAttempt) -> Endpoint:
    answer = ended.answer
    if answer.error is None:
        return replace(endpoint, failing_since_ms=None, not_before_ms=0)
    since_ms = endpoint.failing_since_ms
    failing = replace(endpoint, failing_since_ms=ended.at_ms if since_ms is None else since_ms)
    if answer.status in THROTTLING:
        asked_ms = THROTTLE_MS if answer.retry_after_s is None else answer.retry_after_s * 1000
        failing = replace(failing, not_before_ms=max(failing.not_before_ms, ended.at_ms + asked_ms))
    if endpoint.state != "enabled":
        return failing
    if answer.error == "gone":
        return _disabled(failing, "The listener answered 410: it is gone.", ended.at_ms)
    if since_ms is not None and ended.at_ms - since_ms >= DISABLE_AFTER_MS:
        reason = f"No delivery has succeeded since {iso(moment_of(since_ms))}."
        return _disabled(failing, reason, ended.at_ms)
    return failing


def _disabled(endpoint: Endpoint, reason: str, at_ms: int) -> Endpoint:
    return replace(
        endpoint, state="disabled_due_to_failed_deliveries", reason=reason, updated_at_ms=at_ms
    )


def _end_pending(con: Connection, endpoint: Endpoint) -> None:
    con.execute(
        "UPDATE webhook_deliveries SET state = 'failed', error = ?, finished_at_ms = ? "
        "WHERE endpoint_id = ? AND state = 'pending'",
        [ENDPOINT_DISABLED, endpoint.updated_at_ms, endpoint.id],
    )
    # Only the host is logged: path and query may hold secrets of the listener.
    host, _ = host_and_port(endpoint.url)
    data = {"id": endpoint.id, "host": host, "reason": endpoint.reason}
    emit(con, Event("webhook.disabled", data, endpoint.updated_at_ms))
