"""Messages between the controls of one database, by NOTIFY. Each only saves waiting for the next look."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg import AsyncRawCursor

from fairlead.store.postgresql.connection import KEEPALIVE, SCHEMA, connection_info

STATE: Final = "fairlead_state"
"""A write was committed; the payload is the process that wrote."""
APPLIED: Final = "fairlead_applied"
"""A control's relays have applied a newer snapshot; the payload is that control's process."""

AsyncRaw = psycopg.AsyncConnection[tuple[Any, ...]]


async def connect_async(url: str, purpose: str) -> AsyncRaw:
    """A connection of its own on the event loop, in autocommit."""
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
