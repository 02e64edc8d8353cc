"""Sending again: one delivery of the history, or a range of them."""

from __future__ import annotations

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.moment import ms_of, now_ms
from fairlead.records.webhook_endpoints import Endpoint
from fairlead.store.file import Connection
from fairlead.webhooks.fields import Redelivery
from fairlead.webhooks.history import (
    REDELIVERED_AT_MOST,
    deliveries_between,
    find_delivery,
    free_deliveries,
    requeue,
)


def redeliver(con: Connection, endpoint: Endpoint, redelivery: Redelivery) -> int:
    """Queues deliveries again, in the writer: messages, ids and bodies stay, signatures are new,
    and the tries last another day. Returns how many.
    """
    if endpoint.state != "enabled":
        raise Conflict("The webhook is switched off: switch it on first.")
    at_ms = now_ms()
    chosen = _chosen(con, endpoint.id, redelivery, at_ms)
    if len(chosen) > free_deliveries(con, endpoint.id):
        raise Conflict("Too many deliveries wait for this webhook: try again when fewer do.")
    requeue(con, endpoint.id, chosen, at_ms)
    return len(chosen)


def _chosen(con: Connection, endpoint_id: str, redelivery: Redelivery, at_ms: int) -> list[str]:
    if redelivery.delivery_id is not None:
        if find_delivery(con, endpoint_id, redelivery.delivery_id) is None:
            raise NotFound(
                "There is no delivery with this id in the webhook's history.", param="deliveryId"
            )
        return [redelivery.delivery_id]
    from_ms = ms_of(redelivery.from_) if redelivery.from_ else 0
    until_ms = ms_of(redelivery.to) if redelivery.to else at_ms
    if from_ms >= until_ms:
        end = "to" if redelivery.to else "the current time, because the request has no `to`"
        raise InvalidRequest(f"from must be before {end}.", param="from")
    found = deliveries_between(con, endpoint_id, redelivery.state, from_ms, until_ms)
    if len(found) > REDELIVERED_AT_MOST:
        raise InvalidRequest(
            f"The range has more than {REDELIVERED_AT_MOST} deliveries: name a shorter one.",
            param="from",
        )
    return found
