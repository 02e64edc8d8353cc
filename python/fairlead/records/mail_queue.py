"""Queued mails, in the transaction of the event that they report; `fairlead.gateway.mail` sends them.

The queue is a table, so what was queued is sent after a restart too. It is bounded: what does not fit is stored
as failed, so that somebody sees that it was not sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from fairlead.store.file import Connection
from fairlead.store.ordered_id import ordered_id
from fairlead.store.table import read_number

PENDING_MAX: Final = 1000
DELIVERY_WINDOW_MS: Final = 24 * 3_600_000
QUEUE_FULL: Final = "queue_full"

# The events that mails can report.
MailEvent = Literal["budget.reached", "budget.forecast"]
MAIL_EVENTS: Final[tuple[MailEvent, ...]] = get_args(MailEvent)


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail about an event, in plain text."""

    event: str
    subject: str
    body: str
    at_ms: int


def wants_mail(con: Connection, *events: str) -> bool:
    """Whether a mail server is set for one of these events."""
    row = con.execute("SELECT events FROM mail_server").fetchone()
    return row is not None and not set(events).isdisjoint(row[0])


def queue_mails(con: Connection, mails: Sequence[Mail]) -> int:
    """Queues those mails that somebody wants, in the writer; returns how many were taken in."""
    row = con.execute("SELECT events FROM mail_server").fetchone()
    wanted = [mail for mail in mails if row is not None and mail.event in row[0]]
    if not wanted:
        return 0
    capacity = PENDING_MAX - read_number(con, "SELECT count(*) FROM mails WHERE state = 'pending'")
    con.executemany(
        "INSERT INTO mails VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_row(mail, is_full=at >= capacity) for at, mail in enumerate(wanted)],
    )
    return max(0, min(capacity, len(wanted)))


def _row(mail: Mail, *, is_full: bool) -> list[Any]:
    return [
        ordered_id(mail.at_ms),
        mail.event,
        mail.subject,
        mail.body,
        "failed" if is_full else "pending",
        0,
        mail.at_ms,
        mail.at_ms + DELIVERY_WINDOW_MS,
        mail.at_ms,
        mail.at_ms if is_full else None,
        QUEUE_FULL if is_full else None,
    ]
