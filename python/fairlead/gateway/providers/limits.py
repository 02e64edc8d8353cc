"""The limits of a connection: what an operator sets, the rules between them, and their form in the
snapshot.
"""

from __future__ import annotations

from typing import Any

from fairlead.errors import InvalidRequest
from fairlead.gateway.providers.table import Connection

# How long a request waits in a queue for which no time is set.
QUEUE_TIMEOUT_MS = 10_000
# Columns of the table, each off when null; a queue is for those that wait for one of them, or for a
# rate that the provider tells.
RATES = ("max_concurrent", "requests_per_minute", "tokens_per_minute", "min_gap_ms")
LIMITS = (*RATES, "queue_depth", "queue_timeout_ms")


def check_limits(connection: Connection) -> None:
    """`InvalidRequest` for a field that would have no effect."""
    if (
        connection.queue_depth
        and not _learns(connection)
        and all(getattr(connection, name) is None for name in RATES)
    ):
        raise InvalidRequest(
            "queueDepth would have no effect: nothing waits without maxConcurrent, "
            "requestsPerMinute, tokensPerMinute or minGapMs where "
            "providerSpecificData.learnLimits is false. Set one of them, or send null.",
            param="queueDepth",
        )
    if connection.queue_timeout_ms is not None and not connection.queue_depth:
        raise InvalidRequest(
            "queueTimeoutMs would have no effect without queueDepth. Set it, or send null.",
            param="queueTimeoutMs",
        )


def compile_limits(connection: Connection) -> dict[str, Any]:
    """The member `limits` of a connection in the snapshot: those that are set."""
    limits = {name: value for name in LIMITS if (value := getattr(connection, name)) is not None}
    if connection.queue_depth:
        limits.setdefault("queue_timeout_ms", QUEUE_TIMEOUT_MS)
    if not _learns(connection):
        limits["learns"] = False
    return limits


def _learns(connection: Connection) -> bool:
    """Whether rates that the provider tells count as limits."""
    return connection.provider_specific.get("learn_limits") is not False
