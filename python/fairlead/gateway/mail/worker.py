"""The task that sends mails: those that are due, one after another, each until the server took it or its day is over.

A mail stays `pending` until what came of it is stored. One that was handed over just before control died is handed
over again, under its id.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Final

import structlog

from fairlead.gateway.mail.fields import MailServer
from fairlead.gateway.mail.smtp import MailFailed, MailMessage, send_mail
from fairlead.gateway.mail.table import (
    DueMail,
    FinishedTry,
    find_due,
    next_due_ms,
    read_server,
    settle,
    sweep,
)
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.state import State

AT_ONCE: Final = 20
# Changes wake the task; this interval finds what is due without one, and sweeps.
READ_EVERY_S: Final = 30.0

log = structlog.get_logger("fairlead.mail")


async def deliver(state: State) -> None:
    """Sends until it is cancelled. Raises when the database does not answer; nothing is lost by that."""
    woken = state.watch()
    try:
        while True:
            woken.clear()
            wait_s = await send_due(state)
            try:
                async with asyncio.timeout(wait_s):
                    await woken.wait()
            except TimeoutError:
                await state.database.write(lambda con: sweep(con, now_ms()))
    finally:
        state.unwatch(woken)


async def send_due(state: State) -> float:
    """Tries every mail that is due, and returns after how many seconds the next one may be."""

    def read(con: Connection) -> tuple[MailServer | None, list[DueMail], int | None]:
        return (
            read_server(con, state.sealer),
            find_due(con, now_ms(), AT_ONCE),
            next_due_ms(con),
        )

    while True:
        server, due, next_ms = await state.read(read)
        if server is None or not due:
            break
        for mail in due:
            done = await _try(server, mail)
            await state.database.write(partial(settle, done=done, spread=random.uniform))
            if done.error is not None and not done.is_final:
                # The others would meet the same server: their turn comes with the next look.
                await state.database.write(
                    partial(_put_off, mails=due, after=mail, at_ms=done.at_ms)
                )
                break
    if server is None or next_ms is None:
        return READ_EVERY_S
    return min(max((next_ms - now_ms()) / 1000, 0.05), READ_EVERY_S)


async def _try(server: MailServer, mail: DueMail) -> FinishedTry:
    try:
        await send_mail(server, MailMessage(mail.id, mail.subject, mail.body, mail.created_at_ms))
    except MailFailed as error:
        log.warning("a mail was not sent", id=mail.id, kind=error.kind, tries=mail.tries + 1)
        return FinishedTry(mail, now_ms(), f"{error.kind}: {error}", error.is_final)
    return FinishedTry(mail, now_ms())


def _put_off(con: Connection, mails: list[DueMail], after: DueMail, at_ms: int) -> None:
    """Lets the mails that were not tried wait as long as the one that failed, in the writer."""
    ids = [mail.id for mail in mails if mail.id > after.id]
    con.execute(
        "UPDATE mails SET next_attempt_at_ms = least(expires_at_ms, greatest(?, "
        "(SELECT next_attempt_at_ms FROM mails WHERE id = ?))) "
        "WHERE state = 'pending' AND id IN (SELECT unnest(?::VARCHAR[]))",
        [at_ms, after.id, ids],
    )
