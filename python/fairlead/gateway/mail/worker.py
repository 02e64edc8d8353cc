"""The task that sends mails: those that are due, one after another, each until the server took it or its day is over.

A mail stays `pending` until its result is stored. A mail that was handed over just before control died is
handed over again, under its id. If several controls share a database, one of them sends: the one that has the
queue's lease while something is due (`fairlead.store.work_leases`).
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from fairlead.errors import Internal
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
from fairlead.store.peers import WorkLeases, take_if_reached
from fairlead.store.state import State
from fairlead.store.work_leases import LeaseLost, check_lease, fenced, working_under

AT_ONCE: Final = 20
# Changes wake the task; this interval finds what is due without one, and sweeps.
READ_EVERY_S: Final = 30.0
# The lease is of the whole queue: one server takes the mails of all, one after another.
KIND: Final = "mail"
QUEUE: Final = "queue"
# When another control sends.
ASK_AGAIN_S: Final = 2.0

log = structlog.get_logger("fairlead.mail")


async def deliver(state: State, leases: WorkLeases | None = None) -> None:
    """Sends until it is cancelled. Raises when the database does not answer; nothing is lost by that. `leases` are
    there if other controls are.
    """
    woken = state.watch()
    try:
        while True:
            woken.clear()
            wait_s = await send_due(state, leases)
            try:
                async with asyncio.timeout(wait_s):
                    await woken.wait()
            except TimeoutError:
                await state.database.write(lambda con: sweep(con, now_ms()))
    finally:
        state.unwatch(woken)


async def send_due(state: State, leases: WorkLeases | None = None) -> float:
    """Tries every mail that is due, and returns after how many seconds the next one may be."""
    looked = await _read_outlook(state)
    if looked.has_work and leases is not None:
        taken = await take_if_reached(leases, KIND, [QUEUE])
        if not taken:
            return ASK_AGAIN_S
        try:
            with working_under(taken[QUEUE]):
                # The earlier holder of the lease has stored what it sent.
                looked = await _send_all(state, await _read_outlook(state))
        except LeaseLost:
            return ASK_AGAIN_S
        finally:
            await leases.release(taken.values())
    else:
        looked = await _send_all(state, looked)
    if looked.next_ms is None or (looked.server is None and looked.fault is None):
        return READ_EVERY_S
    return min(max((looked.next_ms - now_ms()) / 1000, 0.05), READ_EVERY_S)


@dataclass(frozen=True, slots=True)
class _Outlook:
    """The mails to be sent at a moment, and when the next one is due."""

    server: MailServer | None
    due: list[DueMail]
    next_ms: int | None
    fault: str | None = None
    """Why the stored server cannot be used; every mail that is due fails with it, and is tried again later."""

    @property
    def has_work(self) -> bool:
        return bool(self.due) and (self.server is not None or self.fault is not None)


async def _read_outlook(state: State) -> _Outlook:
    def read(con: Connection) -> _Outlook:
        due, next_ms = find_due(con, now_ms(), AT_ONCE), next_due_ms(con)
        try:
            return _Outlook(read_server(con, state.sealer), due, next_ms)
        except (Internal, ValueError) as error:
            return _Outlook(None, due, next_ms, f"password_unreadable: {error}")

    return await state.read(read)


async def _send_all(state: State, looked: _Outlook) -> _Outlook:
    """Tries what is due until nothing is; the last look."""
    while looked.has_work:
        for mail in looked.due:
            check_lease()
            if looked.server is None:
                done = FinishedTry(mail, now_ms(), looked.fault)
            else:
                done = await _try(looked.server, mail)
            await state.database.write(fenced(partial(settle, done=done, spread=random.uniform)))
            if done.error is not None and not done.is_final:
                # The others would meet the same server: their turn comes with the next look.
                await state.database.write(
                    fenced(partial(_put_off, mails=looked.due, after=mail, at_ms=done.at_ms))
                )
                break
        looked = await _read_outlook(state)
    return looked


async def _try(server: MailServer, mail: DueMail) -> FinishedTry:
    try:
        await send_mail(server, MailMessage(mail.id, mail.subject, mail.body, mail.created_at_ms))
    except MailFailed as error:
        log.warning("a mail was not sent", id=mail.id, kind=error.kind, tries=mail.tries + 1)
        return FinishedTry(mail, now_ms(), f"{error.kind}: {error}", error.is_final)
    except Exception as error:  # noqa: BLE001 - one mail's defect must not stop the others
        log.error("a mail was not sent", id=mail.id, error=type(error).__name__)
        return FinishedTry(mail, now_ms(), f"internal: {type(error).__name__}")
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
