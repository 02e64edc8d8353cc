"""Calling a provider from control: every resolved address is judged, then exactly that address is
dialled.

A name is resolved once per request. If any of its addresses is one that must never be dialled,
nothing is: a name that mixes them is being played with. Redirects are not followed, and no proxy
setting of the environment is used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from functools import cache

import httpx

from fairlead import _core
from fairlead.gateway.nodes.address import POLICY

MAX_ANSWER_BYTES = 16 * 1024 * 1024
CONNECT_S = 5.0


class AddressForbidden(httpx.ConnectError):
    """The host leads to an address that is never dialled."""


class AnswerTooLarge(httpx.HTTPError):
    """More bytes than a list of models has."""


class CheckedTransport(httpx.AsyncBaseTransport):
    """Dials the judged address of a host, under the host's name (`Host`, TLS)."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=_tls(), trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        errors: list[httpx.ConnectError] = []
        for address in await _resolve(host, port):
            if not _is_literal(host):
                request.extensions = {**request.extensions, "sni_hostname": host}
            request.url = request.url.copy_with(host=address)
            try:
                return await self._inner.handle_async_request(request)
            except httpx.ConnectError as error:
                errors.append(error)
        raise errors[0]

    async def aclose(self) -> None:
        await self._inner.aclose()


def open_client() -> httpx.AsyncClient:
    """A client for one errand; close it."""
    return httpx.AsyncClient(
        transport=CheckedTransport(),
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_S),
        trust_env=False,
    )


async def fetch(client: httpx.AsyncClient, url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """GET: the status and the body, which has at most `MAX_ANSWER_BYTES`; `httpx.HTTPError` when
    there is none.
    """
    async with client.stream("GET", url, headers=headers) as answer:
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > MAX_ANSWER_BYTES:
                raise AnswerTooLarge("the answer is too large")
        return answer.status_code, bytes(body)


@cache
def _tls() -> ssl.SSLContext:
    # Reading the trusted certificates takes tens of milliseconds.
    return httpx.create_ssl_context(trust_env=False)


async def _resolve(host: str, port: int) -> list[str]:
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


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
