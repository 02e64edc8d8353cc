"""Telling listeners of events: one engine for gateway subscriptions, hooks of crawls and the
generative service's webhooks.

Rooms put events into the outbox (`fairlead.store.outbox`). Read here in this order: `worker.py`
(the loop), `due.py` (what it takes up), `attempt.py` (one request), `schedule.py` (when again),
`settle.py` (what an attempt makes of a delivery and of its endpoint), `history.py` (what is shown
and sent again), `retention.py`; `router.py` are the routes of gateway subscriptions.
"""
