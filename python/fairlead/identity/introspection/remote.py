"""Introspection over HTTP, at the built-in issuer in another process or at another issuer.

An answer of another issuer about an active token is cached for half a minute at most, and never
past the token's expiry. A token with a sensitive scope, and any token of the built-in issuer, is
introspected each time, so that a revocation counts at once. Refusals are not cached.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import structlog

from fairlead.calls.bearer import Bearer, BearerRefused
from fairlead.identity.introspection.answer import InvalidAnswer, read_answer
from fairlead.identity.issuer.http import ISSUER_HEADER
from fairlead.identity.issuer.token import hash_of
from fairlead.net.operator_egress import EgressTransport, tls_with

PATH: Final = "/admin/oauth2/introspect"
ANSWER_MAX_BYTES: Final = 64 * 1024
CACHE_MAX: Final = 1000
AT_ONCE: Final = 64
WAITING_MAX: Final = 512
SENSITIVE: Final = frozenset(("admin", "agent:execute", "payment:capture", "key:rotate"))

log = structlog.get_logger("fairlead.identity")


class RemoteIntrospection:
    """Introspection at one issuer's admin address. `token` is the bearer that authenticates us
    there. `ca_file` has certificates that are trusted there besides the system's.
    """

    # Many parameters: the operator's settings of one issuer, and a clock for tests.
    def __init__(
        self,
        admin_url: str,
        *,
        token: str | None = None,
        timeout_s: float = 5.0,
        cache_s: int = 30,
        ca_file: Path | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._url = f"{admin_url}{PATH}"
        self._timeout_s = timeout_s
        self._cache_s = cache_s
        self._now_s = now_s
        self._cache: OrderedDict[bytes, tuple[float, Bearer]] = OrderedDict()
        self._asking = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._http = httpx.AsyncClient(
            transport=EgressTransport(tls=None if ca_file is None else tls_with(ca_file)),
            timeout=timeout_s,
            headers=headers,
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def introspect(self, text: str) -> Bearer:
        """The active token with this text. `BearerRefused`."""
        digest = hash_of(text)
        cached = self._cached(digest)
        if cached is not None:
            return cached
        if self._waiting >= WAITING_MAX:
            raise unavailable()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._timeout_s), self._asking:
                begun_s = time.monotonic()
                document, is_ours = await self._introspect(text)
        except (TimeoutError, httpx.HTTPError, InvalidAnswer) as error:
            log.warning("introspection failed", url=self._url, error=type(error).__name__)
            raise unavailable() from None
        finally:
            self._waiting -= 1
        try:
            bearer = read_answer(document, self._now_s())
        except InvalidAnswer:
            log.warning("introspection failed", url=self._url, error="no such answer")
            raise unavailable() from None
        if not is_ours and not bearer.scopes & SENSITIVE:
            self._keep(digest, bearer, begun_s)
        return bearer

    async def _introspect(self, text: str) -> tuple[Any, bool]:
        async with self._http.stream("POST", self._url, data={"token": text}) as answer:
            if answer.status_code != 200:
                raise InvalidAnswer
            if answer.headers.get("content-encoding", "identity") != "identity":
                # No compression was asked for, and the decompressed size is unknown.
                raise InvalidAnswer
            body = b""
            async for chunk in answer.aiter_raw():
                body += chunk
                if len(body) > ANSWER_MAX_BYTES:
                    raise InvalidAnswer
        try:
            return orjson.loads(body), ISSUER_HEADER in answer.headers
        except ValueError:
            raise InvalidAnswer from None

    def _cached(self, digest: bytes) -> Bearer | None:
        entry = self._cache.get(digest)
        if entry is None:
            return None
        until_s, bearer = entry
        if until_s <= time.monotonic() or bearer.expires_at_s <= self._now_s():
            del self._cache[digest]
            return None
        return bearer

    def _keep(self, digest: bytes, bearer: Bearer, begun_s: float) -> None:
        if self._cache_s <= 0:
            return
        # The lifetime counts from the request, not from the answer.
        self._cache[digest] = (begun_s + self._cache_s, bearer)
        self._cache.move_to_end(digest)
        while len(self._cache) > CACHE_MAX:
            self._cache.popitem(last=False)


def unavailable() -> BearerRefused:
    """The error for a token that no issuer could be asked about."""
    return BearerRefused("unavailable", "Authentication service temporarily unavailable.")
