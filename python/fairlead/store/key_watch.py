"""Ends work with its key: workers on behalf of keys are notified soon after a key is no longer in force."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import structlog

from fairlead.errors import FairleadError
from fairlead.store.key_state import keys_out_of_force
from fairlead.store.state import State

# Changes that come within this are looked at once.
PAUSE_S: Final = 0.25
# A key expires without a change of the database.
LOOK_EVERY_S: Final = 1.0

log = structlog.get_logger("fairlead.store")


async def end_with_keys(
    state: State,
    working_for: Callable[[], Collection[str]],
    end: Callable[[dict[str, str]], Awaitable[None]],
) -> None:
    """Runs until it is cancelled. Calls `end` with the keys that are no longer in force, each with the reason.

    `working_for` returns the keys that there is work for. It is asked after each change of the database, since that
    brings new work too, and every second while there is some.
    """
    changed = state.watch()
    has_work = True
    try:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S if has_work else None):
                    await changed.wait()
            changed.clear()
            key_ids = set(working_for())
            has_work = bool(key_ids)
            if has_work:
                await _check(state, key_ids, end)
            await asyncio.sleep(PAUSE_S)
    finally:
        state.unwatch(changed)


async def _check(
    state: State, key_ids: set[str], end: Callable[[dict[str, str]], Awaitable[None]]
) -> None:
    try:
        reasons = await state.read(lambda con: keys_out_of_force(con, key_ids))
        if reasons:
            await end(reasons)
    except FairleadError as error:
        # The database does not answer. The work needs it too, and this looks again soon.
        log.warning("keys not checked", error=error.kind)
