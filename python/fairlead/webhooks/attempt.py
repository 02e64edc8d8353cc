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

import httpx

from fairlead import __version__, _core
from fairlead.egress import AddressForbidden, Egress, NameUnknown, PinnedTransport
from fairlead.webhooks.schedule import parse_retry_after

DEADLINE_S: Final = 15.0
# So much of an answer is taken, that a listener may finish saying it; it is thrown away.
ANSWER_MAX_BYTES: Final = 16 * 1024
ANSWER_DEADLINE_S: Final = 1.0

ErrorKind = Literal[
    "timeout", "name_unknown", "address_refused", "connection_failed", "tls_failed",
    "connection_broken", "redirect", "status", "gone", "secret_unreadable",
]  # fmt: skip
ERROR_KINDS: Final[tuple[str, ...]] = get_args(ErrorKind)


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is sent, and where to. `secrets` are those that count, the newest first."""

    message_id: str
    body: bytes
    url: str
    secrets: tuple[str, ...]

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

    if not parcel.secrets:
        return answer(None, "secret_unreadable")
    try:
        async with asyncio.timeout(DEADLINE_S):
            status, retry_after = await _send(parcel, egress, at_ms // 1000)
    except (TimeoutError, httpx.TimeoutException):
        return answer(None, "timeout")
    except AddressForbidden:
        return answer(None, "address_refused")
    except NameUnknown:
        return answer(None, "name_unknown")
    except httpx.ConnectError as error:
        return answer(None, "tls_failed" if _is_tls(error) else "connection_failed")
    except httpx.HTTPError:
        return answer(None, "connection_broken")
    return answer(status, _error_of(status), parse_retry_after(retry_after, at_ms))


async def _send(parcel: Parcel, egress: Egress, at_s: int) -> tuple[int, str | None]:
    headers = {
        "content-type": "application/json",
        "user-agent": f"fairlead-webhooks/{__version__}",
        "webhook-id": parcel.message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": _core.sign_webhook(
            list(parcel.secrets), parcel.message_id, at_s, parcel.body
        ),
    }
    # A connection for each attempt: what is dialled is what was judged just now.
    async with (
        httpx.AsyncClient(
            transport=PinnedTransport(egress),
            timeout=DEADLINE_S,
            follow_redirects=False,
            trust_env=False,
        ) as client,
        client.stream("POST", parcel.url, content=parcel.body, headers=headers) as answer,
    ):
        await _let_finish(answer)
        return answer.status_code, answer.headers.get("retry-after")


async def _let_finish(answer: httpx.Response) -> None:
    taken = 0
    try:
        async with asyncio.timeout(ANSWER_DEADLINE_S):
            async for part in answer.aiter_raw():
                taken += len(part)
                if taken > ANSWER_MAX_BYTES:
                    return
    except (TimeoutError, httpx.HTTPError):
        # The status is known, and that is all that counts.
        return


def _error_of(status: int) -> ErrorKind | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return "redirect"
    return "gone" if status == 410 else "status"


def _is_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
