"""Outgoing connections to addresses that an operator chose: providers, identity providers.

Loopback and private networks are allowed, since local models live there; link-local and metadata addresses
never are.

A name is resolved once per request and every address is checked. If any is forbidden, none is dialled, because
a name with mixed addresses suggests an attack. Redirects are not followed, and no proxy setting of the
environment is used. Addresses that callers chose go through `egress.py`.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Final

import httpx

from fairlead import _core

POLICY = "operator"
# Idle connection pools that are kept, the most recently used ones.
POOLS_MAX: Final = 32
_WITHOUT_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!//[^/])")


class AddressForbidden(httpx.ConnectError):
    """The host resolves to an address that is never dialled."""


class _Pool:
    """The connection pool of one host at one of its addresses, with the number of requests that use it."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.transport = httpx.AsyncHTTPTransport(verify=tls, trust_env=False)
        self.uses = 0


class _Body(httpx.AsyncByteStream):
    """A response body that releases its pool when it is closed."""

    def __init__(self, inner: httpx.AsyncByteStream, pool: _Pool) -> None:
        self._inner = inner
        self._pool: _Pool | None = pool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            yield part

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.uses -= 1
        await self._inner.aclose()


class EgressTransport(httpx.AsyncBaseTransport):
    """An httpx transport that dials a checked address of a host, under the host's name (`Host`, TLS).

    `judged` resolves and checks a host: it returns addresses or raises `AddressForbidden`. Pools are keyed by
    host and address together, so that a connection made in one host's name never serves another host at the
    same address. `tls` has the trusted certificates, by default those of the system.
    """

    def __init__(
        self,
        judged: Callable[[str, int], Awaitable[list[str]]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._pools: dict[tuple[str, str], _Pool] = {}
        self._judged = judged or checked_addresses
        self._tls = tls

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        errors: list[httpx.ConnectError] = []
        for address in await self._judged(host, port):
            if address != host:
                request.extensions = {**request.extensions, "sni_hostname": host}
            request.url = request.url.copy_with(host=address)
            try:
                return await self._send(request, await self._pool(host, address))
            except httpx.ConnectError as error:
                errors.append(error)
        raise errors[0]

    async def _pool(self, host: str, address: str) -> _Pool:
        # Moved to the end, so that the first pools are the least recently used.
        pool = self._pools.pop((host, address), None)
        if pool is None:
            pool = _Pool(self._tls or trusted_tls())
        self._pools[host, address] = pool
        pool.uses += 1
        idle = [key for key, each in self._pools.items() if not each.uses]
        for key in idle[: max(0, len(self._pools) - POOLS_MAX)]:
            await self._pools.pop(key).transport.aclose()
        return pool

    async def _send(self, request: httpx.Request, pool: _Pool) -> httpx.Response:
        try:
            answer = await pool.transport.handle_async_request(request)
        except BaseException:
            pool.uses -= 1
            raise
        if not isinstance(answer.stream, httpx.AsyncByteStream):
            raise TypeError("an answer's body is read asynchronously")
        answer.stream = _Body(answer.stream, pool)
        drop_odd_location(answer)
        return answer

    async def aclose(self) -> None:
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.transport.aclose()


def drop_odd_location(answer: httpx.Response) -> None:
    """Removes a `Location` that has a scheme and no host. A client of httpx reads it even where it follows nothing, and
    fails at it with an error that is none of HTTP.
    """
    if _WITHOUT_HOST.match(answer.headers.get("location", "")):
        del answer.headers["location"]


@cache
def trusted_tls() -> ssl.SSLContext:
    """The system's trusted certificates, for connections to providers."""
    # Cached: reading the trusted certificates takes tens of milliseconds.
    return httpx.create_ssl_context(trust_env=False)


def tls_with(ca_file: Path) -> ssl.SSLContext:
    """The system's trusted certificates and those of a PEM file. `OSError` where it cannot be read, `ssl.SSLError`
    where it has none.
    """
    context = httpx.create_ssl_context(trust_env=False)
    context.load_verify_locations(cafile=str(ca_file))
    return context


async def checked_addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, each of which may be dialled. `AddressForbidden` if one may not,
    `httpx.ConnectError` where there is none.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise httpx.ConnectError("the host has no address") from socket.gaierror(str(error))
    except OSError as error:
        raise httpx.ConnectError("the host has no address") from error
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if not addresses:
        raise httpx.ConnectError("the host has no address")
    if not all(_core.address_allowed(address, POLICY) for address in addresses):
        raise AddressForbidden("the host leads to an address that is never dialled")
    return addresses
