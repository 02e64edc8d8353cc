"""Messages between the controls of one database, by NOTIFY. Each only saves waiting for the next look."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import AsyncRawCursor

from fairlead.store.postgresql.connection import KEEPALIVE, SCHEMA, connection_info

STATE: Final = "fairlead_state"
"""A write was committed; the payload is the process that wrote."""
APPLIED: Final = "fairlead_applied"
"""A control's relays have applied a newer snapshot; the payload is that control's process."""

RESPONSES: Final = "fairlead_responses"
"""A control looks for a response that another node may have answered just now. The payload is the moment of the
question, in microseconds by the server's clock.
"""

AsyncRaw = psycopg.AsyncConnection[tuple[Any, ...]]


async def connect_async(url: str, purpose: str) -> AsyncRaw:
    """A separate connection on the event loop, in autocommit."""
    raw = await psycopg.AsyncConnection.connect(
        connection_info(url, purpose), autocommit=True, cursor_factory=AsyncRawCursor
    )
    try:
        await raw.execute(
            f"SET search_path = {SCHEMA}, pg_catalog; SET statement_timeout = 5000; {KEEPALIVE}"
        )
    except BaseException:
        await raw.close()
        raise
    return raw


async def fetch(raw: AsyncRaw, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of a statement. Cancelled, it lets go at once: psycopg waits up to ten seconds for the end of one that
    is cancelled, which a server that stands still does not tell.
    """
    asking = asyncio.create_task(_fetch_all(raw, query, parameters), name="postgresql statement")
    # One that nobody waits for any more fails unheard; the task of the connection finds it closed.
    asking.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        asking.cancel()
        raise


async def _fetch_all(raw: AsyncRaw, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    found = await raw.execute(query, parameters or None)
    return await found.fetchall() if found.description else []
