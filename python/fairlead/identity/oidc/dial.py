"""Calling the identity provider: its addresses are judged, then exactly a judged one is dialled.

The operator names the issuer, which may be on the private network; its discovery document names the
rest, so each host is judged at each call.
"""

from __future__ import annotations

import asyncio
import socket

import httpx

from fairlead import _core

POLICY = "operator"


class AddressForbidden(httpx.ConnectError):
    """The host leads to an address that is never dialled."""


class JudgedTransport(httpx.AsyncBaseTransport):
    """Dials the judged address of a host, under the host's name (`Host`, TLS)."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        errors: list[httpx.ConnectError] = []
        for address in await _judged(host, port):
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
        # A name that mixes them is being played with.
        raise AddressForbidden("the host leads to an address that is never dialled")
    return addresses
