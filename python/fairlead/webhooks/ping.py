"""A test of a listener: one message, sent now and once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.errors import Overloaded
from fairlead.moment import iso, moment_of, now_ms
from fairlead.net.connection_fault import shown_address
from fairlead.records.webhook_endpoints import Endpoint, live_secrets
from fairlead.store.file import Connection
from fairlead.store.ordered_id import ordered_id
from fairlead.store.services import Services
from fairlead.webhooks.attempt import Answer, ErrorKind, OutgoingMessage, attempt
from fairlead.webhooks.history import insert_tested

TESTS_AT_ONCE: Final = 8
PING: Final = "test.ping"

_FAILURES: Final[dict[ErrorKind, str]] = {
    "timeout": "no answer came within 15 s",
    "name_unknown": "the name does not resolve",
    "address_refused": (
        "the name leads to an address that webhooks may not reach; "
        "FAIRLEAD_ALLOW_PRIVATE_FETCH allows your networks"
    ),
    "connection_failed": "{cause}; check host and port, and that the listener runs",
    "tls_failed": "{cause}; check the certificate, or whether the listener speaks plain http",
    "connection_broken": "the connection broke before the answer was complete, or it was not HTTP",
    "redirect": "the listener answered with a redirect ({status}), which is not followed",
    "status": "the listener answered {status}, and only 2xx counts as received",
    "gone": "the listener answered 410 (gone)",
    "secret_unreadable": "the webhook's secret cannot be opened; make a new one with rotate-secret",
}
"""For each kind of error, what happened and what to do."""

_tests = asyncio.Semaphore(TESTS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class FinishedTest:
    """A finished test, as in the history."""

    answer: Answer
    delivery_id: str
    message_id: str
    address: str
    """Scheme, host and port of the listener; its path may be a secret."""

    @property
    def failure(self) -> str | None:
        """Why the listener did not take the message, as a sentence; None where it did."""
        if self.answer.error is None:
            return None
        why = _FAILURES[self.answer.error].format(
            status=self.answer.status, cause=self.answer.cause
        )
        return f"{self.address}: {why}."


async def ping(
    services: Services,
    find: Callable[[Connection], Endpoint],
    members: Mapping[str, Any] | None = None,
) -> FinishedTest:
    """Sends `test.ping`, also to a webhook that is disabled. It is stored in the history, and not repeated. `find`
    raises `NotFound`; `members` go into the body beside `data`. Raises `Overloaded` when too many are in
    progress.
    """
    if _tests.locked():
        raise Overloaded("Too many tests are running; try again.", retry_after_s=5)
    async with _tests:
        return await _ping(services, find, members or {})


async def _ping(
    services: Services, find: Callable[[Connection], Endpoint], members: Mapping[str, Any]
) -> FinishedTest:
    state = services.state
    at_ms = now_ms()

    def find_target(con: Connection) -> tuple[Endpoint, list[str]]:
        endpoint = find(con)
        return endpoint, live_secrets(con, state.sealer, [endpoint.id], at_ms).get(endpoint.id, [])

    endpoint, secrets = await state.read(find_target)
    message_id = f"msg_{ordered_id(at_ms)}"
    data = {"message": "This is a test of fairlead's webhooks."}
    document = {"type": PING, "timestamp": iso(moment_of(at_ms)), **members, "data": data}
    body = orjson.dumps(document)
    outgoing = OutgoingMessage(message_id, body, endpoint.url, tuple(secrets))
    answer = await attempt(outgoing, services.egress, at_ms)
    message = (message_id, PING, body.decode())

    def store_result(con: Connection) -> str:
        # `find` raises when the webhook was deleted meanwhile: then nothing is stored.
        return insert_tested(con, find(con).id, message, answer, now_ms())

    address = shown_address(endpoint.url, with_path=False)
    return FinishedTest(answer, await state.record(store_result), message_id, address)
