"""One attempt: the exact bytes of a message, signed now, sent once to a judged address.

Only 2xx within the deadline is success. A redirect is a failure and is not followed. Nothing that
the listener says is kept but its status and `Retry-After`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import Final, Literal, get_args

import h11

from fairlead import __version__, _core
from fairlead.egress import AddressForbidden, Egress, NameUnknown
from fairlead.host import AddressRefused
from fairlead.store.signing_keys import SigningKey
from fairlead.webhooks.schedule import parse_retry_after

DEADLINE_S: Final = 15.0
# So much of an answer is taken, that a listener may finish saying it; it is thrown away.
ANSWER_MAX_BYTES: Final = 16 * 1024
ANSWER_DEADLINE_S: Final = 1.0
ANSWER_HEAD_MAX_BYTES: Final = 64 * 1024
READ_BYTES: Final = 16 * 1024

ErrorKind = Literal[
    "timeout", "name_unknown", "address_refused", "connection_failed", "tls_failed",
    "connection_broken", "redirect", "status", "gone", "secret_unreadable",
]  # fmt: skip
ERROR_KINDS: Final[tuple[str, ...]] = get_args(ErrorKind)


@dataclass(frozen=True, slots=True)
class Signer:
    """A key whose public half is published, and who we are to its verifiers."""

    key: SigningKey
    issuer: str


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is sent, and where to. `secrets` are those that count, the newest first; a listener with
    which there is none gets a token that `signer` signs.
    """

    message_id: str
    body: bytes
    url: str
    secrets: tuple[str, ...]
    signer: Signer | None = None

    def __repr__(self) -> str:
        return f"Parcel({self.message_id})"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an attempt: `error` is None for success, `status` None when there was none."""

    at_ms: int
    latency_ms: float
    status: int | None
    error: ErrorKind | None
    retry_after_s: int | None = None


async def attempt(parcel: Parcel, egress: Egress, at_ms: int) -> Answer:
    """Sends once, within the deadline. Never raises for what the listener or the network does."""
    started = time.monotonic()

    def answer(
        status: int | None, error: ErrorKind | None, retry_after_s: int | None = None
    ) -> Answer:
        latency_ms = round((time.monotonic() - started) * 1000, 3)
        return Answer(at_ms, latency_ms, status, error, retry_after_s)

    if not parcel.secrets and parcel.signer is None:
        return answer(None, "secret_unreadable")
    try:
        async with asyncio.timeout(DEADLINE_S):
            status, retry_after = await _send(parcel, egress, at_ms // 1000)
    except TimeoutError:
        return answer(None, "timeout")
    except (AddressRefused, AddressForbidden):
        return answer(None, "address_refused")
    except NameUnknown:
        return answer(None, "name_unknown")
    except ssl.SSLError:
        return answer(None, "tls_failed")
    except (Broken, h11.RemoteProtocolError):
        return answer(None, "connection_broken")
    except OSError:
        return answer(None, "connection_failed")
    return answer(status, _error_of(status), parse_retry_after(retry_after, at_ms))


class Broken(Exception):
    """The connection ended before there was an answer."""


async def _send(parcel: Parcel, egress: Egress, at_s: int) -> tuple[int, str | None]:
    # Judged again, whatever got into the database.
    url = egress.normalise_target(parcel.url)
    signature = _signature(parcel, at_s)
    # In the normal spelling there is always a path.
    host, _, path = url.partition("//")[2].partition("/")
    request = h11.Request(
        method="POST",
        target=f"/{path}",
        headers=[
            ("host", host),
            ("content-type", "application/json"),
            ("content-length", str(len(parcel.body))),
            ("user-agent", f"fairlead-webhooks/{__version__}"),
            ("webhook-id", parcel.message_id),
            ("webhook-timestamp", str(at_s)),
            ("webhook-signature", signature),
            ("connection", "close"),
        ],
    )
    # A connection for each attempt: what is dialled is what was judged just now.
    reader, writer = await egress.connect(url)
    try:
        return await _exchange(reader, writer, request, parcel.body)
    except ssl.SSLError:
        # The handshake was well: this is a stream that was cut.
        raise Broken from None
    except OSError as error:
        # `TimeoutError` is one too, and it is the deadline's.
        if isinstance(error, TimeoutError):
            raise
        raise Broken from None
    finally:
        writer.transport.abort()


def _signature(parcel: Parcel, at_s: int) -> str:
    signer = parcel.signer
    if signer is None:
        return _core.sign_webhook(list(parcel.secrets), parcel.message_id, at_s, parcel.body)
    # The audience is the address as the caller gave it: a listener need not know who asked for it.
    return _core.sign_webhook_token(
        signer.key.pem, signer.key.id, signer.issuer, parcel.url, parcel.message_id, at_s,
        parcel.body,
    )  # fmt: skip


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: h11.Request, body: bytes
) -> tuple[int, str | None]:
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=ANSWER_HEAD_MAX_BYTES)
    head = http.send(request) or b""
    writer.write(head + (http.send(h11.Data(data=body)) or b""))
    http.send(h11.EndOfMessage())
    await writer.drain()
    while True:
        event = await _next_event(http, reader)
        if isinstance(event, h11.Response):
            break
        if not isinstance(event, h11.InformationalResponse):
            raise Broken
    retry_after = next((value for name, value in event.headers if name == b"retry-after"), None)
    await _let_finish(http, reader)
    return event.status_code, None if retry_after is None else retry_after.decode("latin-1")


async def _next_event(http: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await reader.read(READ_BYTES))
    if not isinstance(event, h11.Event):
        raise Broken
    return event


async def _let_finish(http: h11.Connection, reader: asyncio.StreamReader) -> None:
    taken = 0
    try:
        async with asyncio.timeout(ANSWER_DEADLINE_S):
            while isinstance(event := await _next_event(http, reader), h11.Data):
                taken += len(event.data)
                if taken > ANSWER_MAX_BYTES:
                    return
    except (Broken, h11.RemoteProtocolError, OSError):
        # The status is known, and that is all that counts. `TimeoutError` is an `OSError`.
        return


def _error_of(status: int) -> ErrorKind | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return "redirect"
    return "gone" if status == 410 else "status"
