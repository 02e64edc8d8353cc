"""One attempt: the exact bytes of a message, signed now, sent once to a checked address.

Only 2xx within the deadline is success. A redirect is a failure and is not followed. Only the status and
`Retry-After` of the receiver's answer are stored.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import Final, Literal, get_args

import h11
import structlog

from fairlead import __version__, _core
from fairlead.net.connection_fault import cause_of
from fairlead.net.egress import AddressForbidden, Egress, NameUnknown
from fairlead.net.host import AddressRefused
from fairlead.records.signing_keys import SigningKey
from fairlead.webhooks.connection import Connection, ConnectionLost, ConnectionPool
from fairlead.webhooks.schedule import parse_retry_after

DEADLINE_S: Final = 15.0

log = structlog.get_logger("fairlead.webhooks")

ErrorKind = Literal[
    "timeout",
    "name_unknown",
    "address_refused",
    "connection_failed",
    "tls_failed",
    "connection_broken",
    "redirect",
    "status",
    "gone",
    "secret_unreadable",
]
ERROR_KINDS: Final[tuple[str, ...]] = get_args(ErrorKind)


@dataclass(frozen=True, slots=True)
class Signer:
    """A signing key whose public half is published, and the name of the issuer for verifiers."""

    key: SigningKey
    issuer: str


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message and its address. `secrets` are those in force, newest first; a listener without one
    gets a token that `signer` signs.
    """

    message_id: str
    body: bytes
    url: str
    secrets: tuple[str, ...]
    signer: Signer | None = None

    def __repr__(self) -> str:
        return f"OutgoingMessage({self.message_id})"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an attempt: `error` is None for success, `status` None when there was no
    answer. `cause` says why no connection was made, where that is what failed.
    """

    at_ms: int
    latency_ms: float
    status: int | None
    error: ErrorKind | None
    retry_after_s: int | None = None
    cause: str | None = None


async def attempt(
    message: OutgoingMessage,
    egress: Egress,
    at_ms: int,
    listener_pool: ConnectionPool | None = None,
) -> Answer:
    """Sends once, within the deadline, over a kept connection to this listener if there is one.
    Never raises for errors of the listener or the network.
    """
    started = time.monotonic()

    def answer(
        status: int | None,
        error: ErrorKind | None,
        retry_after_s: int | None = None,
        cause: str | None = None,
    ) -> Answer:
        latency_ms = round((time.monotonic() - started) * 1000, 3)
        return Answer(at_ms, latency_ms, status, error, retry_after_s, cause)

    if not message.secrets and message.signer is None:
        return answer(None, "secret_unreadable")
    try:
        async with asyncio.timeout(DEADLINE_S):
            status, retry_after = await _send(message, egress, at_ms // 1000, listener_pool)
    except TimeoutError:
        return answer(None, "timeout")
    except (AddressRefused, AddressForbidden):
        return answer(None, "address_refused")
    except NameUnknown:
        return answer(None, "name_unknown")
    except ssl.SSLError as error:
        return answer(None, "tls_failed", cause=cause_of(error))
    except ConnectionLost:
        return answer(None, "connection_broken")
    except OSError as error:
        return answer(None, "connection_failed", cause=cause_of(error))
    except Exception as error:  # noqa: BLE001 - one odd row must not stop the deliveries to everybody else
        log.error("a delivery failed", message=message.message_id, error=type(error).__name__)
        return answer(None, "connection_broken")
    return answer(status, _error_of(status), parse_retry_after(retry_after, at_ms))


async def _send(
    message: OutgoingMessage, egress: Egress, at_s: int, listener_pool: ConnectionPool | None
) -> tuple[int, str | None]:
    # Checked again, in case a bad address got into the database.
    url = egress.normalise_target(message.url)
    # The normal spelling always has a path.
    host, _, path = url.partition("//")[2].partition("/")
    request = h11.Request(
        method="POST",
        target=f"/{path}",
        headers=[
            ("host", host),
            ("content-type", "application/json"),
            ("content-length", str(len(message.body))),
            ("user-agent", f"fairlead-webhooks/{__version__}"),
            ("webhook-id", message.message_id),
            ("webhook-timestamp", str(at_s)),
            ("webhook-signature", _signature(message, at_s)),
            *([] if listener_pool is not None else [("connection", "close")]),
        ],
    )
    pool = ConnectionPool() if listener_pool is None else listener_pool
    try:
        return await _exchange(pool, await pool.take(egress, url), request, message.body)
    except ConnectionLost as broken:
        if not broken.is_stale:
            raise
    # The listener had closed the idle connection, which is no failure of the listener.
    connection = await pool.take(egress, url, fresh=True)
    return await _exchange(pool, connection, request, message.body)


async def _exchange(
    pool: ConnectionPool, connection: Connection, request: h11.Request, body: bytes
) -> tuple[int, str | None]:
    try:
        answer = await connection.exchange(request, body)
    except BaseException:
        connection.close()
        raise
    pool.give_back(connection)
    return answer


def _signature(message: OutgoingMessage, at_s: int) -> str:
    signer = message.signer
    if signer is None:
        return _core.sign_webhook(list(message.secrets), message.message_id, at_s, message.body)
    # The audience is the address as the caller gave it, because the listener may not know the caller.
    return _core.sign_webhook_token(
        signer.key.pem,
        signer.key.id,
        signer.issuer,
        message.url,
        message.message_id,
        at_s,
        message.body,
    )


def _error_of(status: int) -> ErrorKind | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return "redirect"
    return "gone" if status == 410 else "status"
