"""Delivery of events to webhooks: one engine for gateway subscriptions, hooks of crawls and the
generative service's webhooks.

Packages put events into the outbox (`fairlead.store.outbox`). Read here in this order: `worker.py`
(the loop), `due_deliveries.py` (what it takes up), `endpoint_queue.py` (the queue of each
endpoint), `attempt.py` (one request), `schedule.py` (the next try), `settle.py` (the effect of an
attempt on its delivery and endpoint), `history.py` (shown and sent again), `retention.py`;
`router.py` has the routes of gateway subscriptions.
"""
