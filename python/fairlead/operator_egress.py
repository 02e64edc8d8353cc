"""Where control connects to on an operator's word: providers, identity providers. Loopback and private
networks are fine, since local models live there; link-local and metadata addresses never are.

A name is resolved once per request, every address that it leads to is judged, and exactly one of
those is dialled. If any of them must never be dialled, nothing is: a name that mixes them is being
played with. Redirects are not followed here, and no proxy setting of the environment is used.
What somebody else chose goes through `egress.py`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import cache

import httpx

from fairlead import _core

POLICY = "operator"


class AddressForbidden(httpx.ConnectError):
    """The host leads to an address that is never dialled."""


class JudgedTransport(httpx.AsyncBaseTransport):
    """Dials a judged address of a host, under the host's name (`Host`, TLS). Who judges may be
    another: `judged` gives the addresses, or raises `AddressForbidden`.
    """

    def __init__(self, judged: Callable[[str, int], Awaitable[list[str]]] | None = None) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=_tls(), trust_env=False)
        self._judged = judged or _judged

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        errors: list[httpx.ConnectError] = []
        for address in await self._judged(host, port):
            if address != host:
                request.extensions = {**request.extensions, "sni_hostname": host}
            request.url = request.url.copy_with(host=address)
            try:
                return await self._inner.handle_async_request(request)
            except httpx.ConnectError as error:
                errors.append(error)
        raise errors[0]

    async def aclose(self) -> None:
        await self._inner.aclose()


@cache
def _tls() -> ssl.SSLContext:
    # Reading the trusted certificates takes tens of milliseconds.
    return httpx.create_ssl_context(trust_env=False)


async def _judged(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise httpx.ConnectError("the host has no address") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if not addresses:
        raise httpx.ConnectError("the host has no address")
    if not all(_core.address_allowed(address, POLICY) for address in addresses):
        raise AddressForbidden("the host leads to an address that is never dialled")
    return addresses
