"""Calls of the gateway's own JSON routes, in this process and as the caller of the page.

A call passes control from its gate on, so it is validated, audited and answered as one from outside. The
relay's check of the caller's right is made here, by the tier of the route.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.types import Message

from fairlead import _core
from fairlead.calls.caller import Principal, caller_of
from fairlead.errors import FairleadError, Forbidden, Internal, NotFound
from fairlead.store.services import services_of

T = TypeVar("T")

# A path with a name in it has as many forms as there are names.
DECISIONS_KEPT: Final = 2048

# A few names for each set of rights.
PAGE_CACHE_MAX: Final = 64

# Headers of the page's own request that say nothing of the call.
_OWN_HEADERS: Final = frozenset(
    {b"content-length", b"content-type", b"x-fairlead-form", b"x-fairlead-worker", b"accept"}
)
_Headers = tuple[tuple[bytes, bytes], ...]
_SCOPE: Final = ("asgi", "http_version", "scheme", "root_path", "client", "server", "type", "app")


class Refused(Exception):
    """A call that was answered with an error. `message` says what is wrong, `param` of which field, `extra`
    has what else the answer holds.
    """

    def __init__(
        self,
        status: int,
        message: str,
        param: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.extra = extra or {}


def may_call(principal: Principal, method: str, path: str) -> bool:
    """Whether a page may call a route for its visitor, as the relay decides it for a session or the local command
    line; nobody else has pages. Pages call no models and no route of keys.
    """
    if principal.kind not in ("session", "local"):
        return False
    return _person_may(principal.kind == "local" or "manage" in principal.scopes, method, path)


_person_may = lru_cache(maxsize=DECISIONS_KEPT)(_core.person_may)


class PageCache:
    """Values that pages read from the state, cached until the state changes: one for each name and each
    set of rights.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, ...], tuple[int, Any]] = {}
        self._locks: dict[tuple[str, ...], asyncio.Lock] = {}

    def lock(self, key: tuple[str, ...]) -> asyncio.Lock:
        """Held by the reader while others wait for its result."""
        return self._locks.setdefault(key, asyncio.Lock())

    def find(self, key: tuple[str, ...], version: int) -> Any | None:
        """The value that was read at this version of the state, or None."""
        read_at, value = self._values.get(key, (-1, None))
        return value if read_at == version else None

    def keep(self, key: tuple[str, ...], version: int, value: Any) -> None:
        """Stores a value that was read at this version, or later."""
        if len(self._values) >= PAGE_CACHE_MAX:
            self._values.clear()
            self._locks.clear()
        self._values[key] = (version, value)


class Api:
    """The routes of the API, called as whoever sent `request`."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._principal = caller_of(request).principal

    def may(self, method: str, path: str) -> bool:
        """Whether the person may call this route."""
        return may_call(self._principal, method, path)

    async def cached(self, name: str, read: Callable[[Self], Awaitable[T]]) -> T:
        """The value that `read` makes of routes that depend on the state alone, read again when the state has changed.

        If other controls change the state too, it is read each time, because this control hears of their
        changes a moment later. Everybody with the same rights gets the same copy: no part of it may depend on
        the caller.
        """
        if services_of(self._request).peers is not None:
            return await read(self)
        return await self.cached_for_a_while(name, read)

    async def cached_for_a_while(self, name: str, read: Callable[[Self], Awaitable[T]]) -> T:
        """As `cached`, of what depends on time too and may be a moment old; `name` has in it the time for which it
        holds.
        """
        services = services_of(self._request)
        readings = services.singleton(PageCache, PageCache)
        key = (name, self._principal.kind, *sorted(self._principal.scopes))
        async with readings.lock(key):
            version = services.state.changes
            found: T | None = readings.find(key, version)
            if found is None:
                found = await read(self)
                readings.keep(key, version, found)
            return found

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON that a GET answers; parameters that are None or empty are not sent. `Refused`."""
        return await self.send("GET", path, query=query)

    async def send(
        self, method: str, path: str, body: Any = None, query: dict[str, Any] | None = None
    ) -> Any:
        """The JSON of an answer, None for an empty one. `Refused` for an error."""
        sent = b"" if body is None else orjson.dumps(body)
        kind = ((b"content-type", b"application/json"),) if sent else ()
        return await self._send(method, path, sent, query or {}, kind)

    def _check(self, method: str, path: str) -> None:
        if not self.may(method, path):
            error = Forbidden(
                "This account may not do this: ask the gateway's owner for the right."
            )
            raise Refused(error.status, error.message)

    async def _send(
        self, method: str, path: str, body: bytes, query: dict[str, Any], headers: _Headers
    ) -> Any:
        """The JSON of an answer. `Refused` for an error."""
        self._check(method, path)
        if body:
            headers = (*headers, (b"content-length", str(len(body)).encode()))
        status, answer = await self._pass(self._scope(method, path, query, headers), body)
        try:
            document = orjson.loads(answer) if answer else None
        except orjson.JSONDecodeError:
            raise Refused(Internal.status, "The answer was no JSON.") from None
        if status >= 400:
            raise _refusal(status, document)
        return document

    def _headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of the page's own request that go along."""
        headers = self._request.scope["headers"]
        return [(name, value) for name, value in headers if name not in _OWN_HEADERS]

    def _scope(
        self, method: str, path: str, query: dict[str, Any], headers: _Headers
    ) -> dict[str, Any]:
        scope = self._request.scope
        words = {name: value for name, value in query.items() if value not in (None, "")}
        inner = {
            **{name: scope[name] for name in _SCOPE if name in scope},
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(words, doseq=True).encode(),
            "headers": [*self._headers(), *headers],
        }
        if "state" in scope:
            inner["state"] = scope["state"]
        return inner

    async def _pass(self, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        status, chunks, is_read = 500, [], False

        async def receive() -> Message:
            nonlocal is_read
            if is_read:
                return {"type": "http.disconnect"}
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                chunks.append(message.get("body", b""))

        await self._request.app(scope, receive, send)
        return status, b"".join(chunks)


def refused(error: FairleadError) -> Refused:
    """The error of a page itself, as one of a call."""
    return Refused(error.status, error.message, error.param)


def not_there(what: str) -> Refused:
    """For an address that names nothing."""
    return Refused(NotFound.status, f"There is no {what} here. It may have been deleted.")


def _refusal(status: int, document: Any) -> Refused:
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, dict):
        return Refused(status, str(error.get("message", "")), error.get("param"), document)
    return Refused(status, str(error or "The call failed."))
