"""Deliveries that are due now: a few of each endpoint, so that no endpoint's queue delays
another's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from fairlead.errors import Internal
from fairlead.records.signing_keys import find_signing_key
from fairlead.records.webhook_endpoints import live_secrets
from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer
from fairlead.webhooks.attempt import OutgoingMessage, Signer

log = structlog.get_logger("fairlead.webhooks")

IN_FLIGHT_MAX: Final = 256
# Deliveries of one endpoint that are read beyond those in flight, so that the next goes out as
# soon as one is answered; and of all endpoints together, whose bodies are then in memory.
QUEUE_MAX: Final = 64
TAKEN_UP_MAX: Final = 512
PER_ENDPOINT_MAX: Final = 8
# Above this, an endpoint with a delivery in flight gets no more: many that begin to stall at once
# must not fill the room before they are known to fail.
CROWDED: Final = 128
# An endpoint whose last attempt failed gets one at a time, and all such endpoints together leave
# most of the room to those that answer.
FAILING_MAX: Final = 64

_DUE = """
WITH due AS (
    SELECT
        d.id, d.endpoint_id, d.message_id, d.tries, d.expires_at_ms, d.next_attempt_at_ms,
        e.url, e.surface, e.failing_since_ms IS NOT NULL AS failing,
        row_number() OVER (PARTITION BY d.endpoint_id ORDER BY d.next_attempt_at_ms, d.id) AS place
    FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
    WHERE d.state = 'pending' AND d.next_attempt_at_ms <= $now
        AND e.state = 'enabled' AND e.not_before_ms <= $now
        AND d.id NOT IN (SELECT unnest($taken::VARCHAR[]))
        AND ($is_of_all OR d.endpoint_id IN (SELECT unnest($endpoints::VARCHAR[])))
        -- These get no second one at a time: they must not fill the page.
        AND NOT (e.failing_since_ms IS NOT NULL AND e.id IN (SELECT unnest($busy::VARCHAR[])))
)
SELECT due.id, due.endpoint_id, due.message_id, due.tries, due.expires_at_ms, due.url,
    due.surface, due.failing, m.body
FROM due JOIN webhook_messages m ON m.id = due.message_id
WHERE due.place <= $per_endpoint
ORDER BY due.place, due.next_attempt_at_ms LIMIT $most
"""

# The longest wait first.
_ENDPOINTS = """
SELECT d.endpoint_id
FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE d.state = 'pending' AND d.next_attempt_at_ms <= $now
    AND e.state = 'enabled' AND e.not_before_ms <= $now
    AND d.endpoint_id NOT IN (SELECT unnest($excluded::VARCHAR[]))
GROUP BY d.endpoint_id ORDER BY min(d.next_attempt_at_ms), d.endpoint_id LIMIT $most
"""

_NEXT = """
SELECT min(greatest(d.next_attempt_at_ms, e.not_before_ms))
FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE d.state = 'pending' AND e.state = 'enabled'
    AND greatest(d.next_attempt_at_ms, e.not_before_ms) > ?
"""


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """A delivery to be tried now, after `tries` failures since it was queued."""

    id: str
    endpoint_id: str
    tries: int
    expires_at_ms: int
    failing: bool
    message: OutgoingMessage


@dataclass(frozen=True, slots=True)
class DueDeliveries:
    """Deliveries that were read. `next_ms` is when the next one after now is due. `is_all`: nothing
    else is due now, except at failing endpoints with one in flight.
    """

    due: list[DueDelivery]
    next_ms: int | None
    is_all: bool


def endpoints_due(con: Connection, now_ms: int, excluded: Collection[str], most: int) -> list[str]:
    """Endpoints beside those held to which something is to be delivered now."""
    rows = con.execute(
        _ENDPOINTS, {"now": now_ms, "excluded": list(excluded), "most": most}
    ).fetchall()
    return [str(endpoint_id) for (endpoint_id,) in rows]


# Many parameters: what is read depends on all of them, and nothing else does.
def find_due(
    con: Connection,
    sealer: Sealer,
    now_ms: int,
    taken: Mapping[str, DueDelivery],
    issuer: str = "",
    endpoints: Collection[str] | None = None,
) -> DueDeliveries:
    """Due deliveries to these endpoints (None: to all) for which there is room beside those taken up already. `issuer`
    is our name for listeners without a secret.
    """
    busy = Counter(each.endpoint_id for each in taken.values())
    remaining = TAKEN_UP_MAX - len(taken)
    rows = con.execute(
        _DUE,
        {
            "now": now_ms,
            "taken": list(taken),
            "is_of_all": endpoints is None,
            "endpoints": list(endpoints or ()),
            "busy": list(busy),
            "per_endpoint": QUEUE_MAX,
            "most": max(remaining, 0),
        },
    ).fetchall()
    secrets = live_secrets(con, sealer, list({row[1] for row in rows}), now_ms)
    signer = _signer(con, sealer, issuer) if any(row[6] == "job" for row in rows) else None
    failing_busy = sum(each.failing for each in taken.values())
    chosen: list[DueDelivery] = []
    for row in rows:
        delivery_id, endpoint_id, message_id, tries, expires_at_ms, url, surface, failing, body = (
            row
        )
        if busy[endpoint_id] >= (1 if failing else QUEUE_MAX):
            continue
        if failing and failing_busy >= FAILING_MAX:
            continue
        busy[endpoint_id] += 1
        failing_busy += failing
        message = OutgoingMessage(
            message_id,
            body.encode(),
            url,
            tuple(secrets.get(endpoint_id, ())),
            signer if surface == "job" else None,
        )
        chosen.append(DueDelivery(delivery_id, endpoint_id, tries, expires_at_ms, failing, message))
    following = con.execute(_NEXT, [now_ms]).fetchone()
    is_all = len(chosen) == len(rows) < remaining and max(busy.values(), default=0) < QUEUE_MAX
    return DueDeliveries(chosen, following[0] if following else None, is_all)


def _signer(con: Connection, sealer: Sealer, issuer: str) -> Signer | None:
    try:
        key = find_signing_key(con, sealer)
    except Internal:
        # Deliveries without a usable secret fail with a reason; those of other endpoints go out.
        log.error("the signing key of webhook tokens cannot be decrypted")
        return None
    return None if key is None else Signer(key, issuer)
