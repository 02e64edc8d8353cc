"""Settled model calls as events, for webhooks that subscribe to them.

Usage and outbox are two databases, so there is no one transaction. A segment's file is deleted when
both have taken it in; whatever dies before that, its calls are raised again under the same ids,
and the outbox takes each id once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import polars as pl

from fairlead import _core
from fairlead.moment import iso, moment_of, now_ms
from fairlead.records.mail_queue import wants_mail
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit, have_listeners
from fairlead.store.state import State
from fairlead.usage.budgets.budget_alerts import EVENTS as ALERTS
from fairlead.usage.budgets.budget_alerts import Payers, raise_alerts
from fairlead.usage.budgets.usage_events import EVENTS as TURNS
from fairlead.usage.budgets.usage_events import read_combos, read_names, usage_events
from fairlead.usage.routes.views import read_failed_attempts

EVENTS: Final = ("request.completed", "request.failed")
# Endpoints that are answered without a provider, so their requests are no model calls.
_NOT_CALLS: Final = ("models", "management", "public")
# Events of one transaction; more would make other writes wait.
AT_ONCE: Final = 2000


async def announce(state: State, usage: Database, batches: Sequence[pl.DataFrame]) -> None:
    """Emits an event for each model call, except calls whose key asked for no log, and the alerts of the callers'
    budgets.
    """
    listens = await state.read(_listens)
    if not any(listens):
        return
    rows = pl.concat(batches)
    if listens[2]:
        await raise_alerts(state, usage, _payers(rows), now_ms())
    events = _events(rows) if listens[0] else iter(())
    if listens[1]:
        combos, names = await state.read(lambda con: (read_combos(con), read_names(con)))
        events = chain(events, usage_events(rows, combos, names))
    while chunk := list(islice(events, AT_ONCE)):
        await state.record(partial(_emit, chunk))


def _listens(con: Connection) -> list[bool]:
    """Whether somebody is notified of calls, of turns, and of alerts."""
    by_webhook = have_listeners(con, EVENTS, TURNS, ALERTS)
    return [*by_webhook[:2], by_webhook[2] or wants_mail(con, *ALERTS)]


def _payers(rows: pl.DataFrame) -> Payers:
    paid = rows.filter(pl.col("cost_usd_micros") > 0)
    paths = paid["group_path"].drop_nulls().unique().to_list()
    return Payers(
        paid["key_id"].drop_nulls().unique().to_list(),
        {group_id for path in paths for group_id in path.split("/")},
    )


def _emit(events: Sequence[Event], con: Connection) -> None:
    emit(con, *events)


def _events(rows: pl.DataFrame) -> Iterator[Event]:
    announced = rows.filter(~pl.col("no_log") & ~pl.col("endpoint").is_in(_NOT_CALLS))
    for row in announced.iter_rows(named=True):
        name = "request.completed" if row["outcome"] == "completed" else "request.failed"
        message_id = f"msg_{_core.hash_secret(row['request_id'])[:40]}"
        yield Event(name, _data(row), id=message_id)


def _data(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "requestId": row["request_id"],
        "timestamp": iso(moment_of(row["ts_ms"])),
        "keyId": row["key_id"],
        "endpoint": row["endpoint"],
        "model": row["model"],
        "provider": row["provider"],
        "connectionId": row["connection_id"],
        "status": row["status"],
        "outcome": row["outcome"],
        "errorKind": row["error_kind"],
        "errorMessage": row["error_message"],
        "failedAttempts": [
            each.model_dump(by_alias=True) for each in read_failed_attempts(row["failed_attempts"])
        ],
        "tokensInput": row["tokens_input"],
        "tokensOutput": row["tokens_output"],
        "costUsdMicros": row["cost_usd_micros"],
        "latencyMs": row["latency_ms"],
    }
