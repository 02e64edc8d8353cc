"""The table `mail_server`, which has one row or none, and the mails that wait in `mails`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import SecretStr

from fairlead.gateway.mail.fields import MailQueue, MailServer
from fairlead.moment import moment_of
from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer

SEALED_AS: Final = "mail-server"
EXPIRED: Final = "expired"
# Finished mails are kept for a week, and no more than so many.
KEPT_MS: Final = 7 * 86_400_000
FINISHED_MAX: Final = 5000

# Seconds after the first, second, ... failure; the last interval repeats until the mail's day is over.
BACKOFF_S: Final = (10, 60, 300, 900, 3600)
JITTER: Final = 0.2

_COLUMNS: Final = "host, port, tls, username, password_sealed, sender, recipients, events"


@dataclass(frozen=True, slots=True)
class DueMail:
    """A mail that is to be tried now."""

    id: str
    subject: str
    body: str
    tries: int
    created_at_ms: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class FinishedTry:
    """A try of a mail; `error` is None where the server took it in."""

    mail: DueMail
    at_ms: int
    error: str | None = None
    is_final: bool = field(default=False)


def read_server(con: Connection, sealer: Sealer) -> MailServer | None:
    """The mail server with its password opened, or None."""
    row = con.execute(f"SELECT {_COLUMNS} FROM mail_server").fetchone()
    if row is None:
        return None
    host, port, tls, username, sealed, sender, recipients, events = row
    password = None if sealed is None else SecretStr(sealer.unseal(SEALED_AS, sealed).decode())
    return MailServer.model_construct(
        host=host,
        port=port,
        tls=tls,
        username=username,
        password=password,
        sender=sender,
        recipients=recipients,
        events=events,
    )


def put_server(con: Connection, sealer: Sealer, server: MailServer, at_ms: int) -> None:
    """Stores the server in place of the one before, in the writer."""
    drop_server(con)
    password = server.password
    sealed = (
        None if password is None else sealer.seal(SEALED_AS, password.get_secret_value().encode())
    )
    con.execute(
        f"INSERT INTO mail_server ({_COLUMNS}, updated_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            *(server.host, server.port, server.tls, server.username, sealed),
            *(server.sender, server.recipients, server.events, at_ms),
        ],
    )
    # Whatever was wrong may be right now.
    con.execute(
        "UPDATE mails SET next_attempt_at_ms = ? WHERE state = 'pending' AND next_attempt_at_ms > ?",
        [at_ms, at_ms],
    )


def drop_server(con: Connection) -> None:
    """Deletes the server, in the writer."""
    con.execute("DELETE FROM mail_server")


def end_pending(con: Connection, reason: str, at_ms: int) -> None:
    """Ends every mail that waits, in the writer."""
    con.execute(
        "UPDATE mails SET state = 'failed', error = ?, finished_at_ms = ? WHERE state = 'pending'",
        [reason, at_ms],
    )


def find_due(con: Connection, at_ms: int, most: int) -> list[DueMail]:
    """Mails that are to be tried at this moment, the oldest first."""
    rows = con.execute(
        "SELECT id, subject, body, tries, created_at_ms, expires_at_ms FROM mails "
        "WHERE state = 'pending' AND next_attempt_at_ms <= ? ORDER BY id LIMIT ?",
        [at_ms, most],
    ).fetchall()
    return [DueMail(*row) for row in rows]


def next_due_ms(con: Connection) -> int | None:
    """When the next mail is to be tried; None where none waits."""
    row = con.execute(
        "SELECT min(next_attempt_at_ms) FROM mails WHERE state = 'pending'"
    ).fetchone()
    return None if row is None or row[0] is None else int(row[0])


def settle(con: Connection, done: FinishedTry, spread: Callable[[float, float], float]) -> None:
    """Stores the result of a delivery attempt, in the writer. `spread` is `random.uniform`."""
    mail = done.mail
    interval_s = BACKOFF_S[min(mail.tries, len(BACKOFF_S) - 1)]
    next_ms = done.at_ms + round(interval_s * spread(1 - JITTER, 1 + JITTER) * 1000)
    state = "sent" if done.error is None else "pending"
    if done.error is not None and (done.is_final or done.at_ms >= mail.expires_at_ms):
        state = "failed"
    con.execute(
        "UPDATE mails SET state = ?, tries = tries + 1, next_attempt_at_ms = ?, finished_at_ms = ?, "
        "error = ? WHERE id = ? AND state = 'pending'",
        [
            state,
            min(next_ms, max(mail.expires_at_ms, done.at_ms)),
            None if state == "pending" else done.at_ms,
            done.error,
            mail.id,
        ],
    )


def sweep(con: Connection, at_ms: int) -> None:
    """Deletes mails that were finished long ago, or are too many, in the writer."""
    surplus = con.execute(
        "SELECT finished_at_ms FROM mails WHERE state <> 'pending' "
        "ORDER BY finished_at_ms DESC OFFSET ? LIMIT 1",
        [FINISHED_MAX],
    ).fetchone()
    before_ms = max(at_ms - KEPT_MS, int(surplus[0]) + 1 if surplus else 0)
    con.execute("DELETE FROM mails WHERE state <> 'pending' AND finished_at_ms < ?", [before_ms])


def read_queue(con: Connection) -> MailQueue:
    """How many mails wait, were sent and failed, in the time that they are kept."""
    counts: dict[str, Any] = dict(
        con.execute("SELECT state, count(*) FROM mails GROUP BY state").fetchall()
    )
    error = con.execute(
        "SELECT error FROM mails WHERE error IS NOT NULL "
        "ORDER BY coalesce(finished_at_ms, next_attempt_at_ms) DESC LIMIT 1"
    ).fetchone()
    sent = con.execute("SELECT max(finished_at_ms) FROM mails WHERE state = 'sent'").fetchone()
    return MailQueue.model_construct(
        pending=counts.get("pending", 0),
        sent=counts.get("sent", 0),
        failed=counts.get("failed", 0),
        last_error=None if error is None else error[0],
        last_sent_at=None if sent is None or sent[0] is None else moment_of(sent[0]),
    )
