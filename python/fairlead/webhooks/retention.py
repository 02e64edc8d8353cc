"""Limits of the history and of the queue: old deliveries are deleted, and those that waited too
long are ended.
"""

from __future__ import annotations

import asyncio
from typing import Final

from fairlead.moment import now_ms
from fairlead.records.service_jobs import sweep_jobs
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.state import State

EVERY_S: Final = 60.0
DAY_MS: Final = 86_400_000
FINISHED_MAX: Final = 200_000
# The last attempt begins at the end of the window, and needs time to finish.
GRACE_MS: Final = 15 * 60_000

EXPIRED: Final = "expired"


async def run_retention(state: State) -> None:
    """Sweeps once a minute until it is cancelled. Raises when the database does not answer."""
    while True:
        await state.database.write(lambda con: sweep(con, now_ms()))
        await asyncio.sleep(EVERY_S)


def sweep(con: Connection, at_ms: int) -> None:
    """Ends deliveries that waited too long, and deletes history that is too old or too much, in the
    writer.
    """
    con.execute(
        "UPDATE webhook_deliveries SET state = 'failed', error = coalesce(error, ?), "
        "finished_at_ms = ? WHERE state = 'pending' AND expires_at_ms < ?",
        [EXPIRED, at_ms, at_ms - GRACE_MS],
    )
    oldest_ms = at_ms - read_operator_settings(con).webhook_history_days * DAY_MS
    surplus = con.execute(
        "SELECT finished_at_ms FROM webhook_deliveries WHERE state <> 'pending' "
        "ORDER BY finished_at_ms DESC OFFSET ? LIMIT 1",
        [FINISHED_MAX],
    ).fetchone()
    before_ms = max(oldest_ms, int(surplus[0]) + 1 if surplus else 0)
    gone = con.execute(
        "DELETE FROM webhook_deliveries WHERE state <> 'pending' AND finished_at_ms < ? "
        "RETURNING 1",
        [before_ms],
    ).fetchall()
    if gone:
        con.execute(
            "DELETE FROM webhook_attempts WHERE delivery_id NOT IN "
            "(SELECT id FROM webhook_deliveries)"
        )
    sweep_jobs(con)
    con.execute(
        "DELETE FROM webhook_messages WHERE id NOT IN (SELECT message_id FROM webhook_deliveries)"
    )
