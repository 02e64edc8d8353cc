"""Connections of the fetcher: pooled by host name, each dialled through the egress guard. Because the guard checks
each socket, redirects and names that change their address pass it too. The name itself stays in `Host` and in
TLS.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore
import httpx

from fairlead.net.egress import AddressForbidden, Egress, NameUnknown

RESOLVE_S = 5.0
ADDRESSES_MAX = 32


class Forbidden(httpx.ConnectError):
    """The host leads to an address that is not dialled from here."""


class _Stream(httpcore.AsyncNetworkStream):
    """A socket that answers cheaply whether the other side has closed it: the pool asks that of every idle
    connection at every request.
    """

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        raw = inner.get_extra_info("socket")
        self._poll = select.poll()
        self._is_watched = raw is not None and raw.fileno() >= 0
        if self._is_watched:
            self._poll.register(raw.fileno(), select.POLLIN)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        # The file descriptor of a closed socket is soon another's.
        self._is_watched = False
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
    ) -> httpcore.AsyncNetworkStream:
        self._is_watched = False
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._is_watched:
            return bool(self._poll.poll(0))
        return self._inner.get_extra_info(info)


class _Backend(httpcore.AsyncNetworkBackend):
    """Makes sockets to addresses that the egress guard allows."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception | None = None
        try:
            async with asyncio.timeout(RESOLVE_S):
                addresses = await self._egress.resolve(host, port)
        except TimeoutError:
            raise httpx.ConnectError("the host's name was not resolved in time") from None
        except AddressForbidden as error:
            raise Forbidden(str(error)) from None
        except NameUnknown as error:
            raise httpx.ConnectError(str(error)) from None
        for address in addresses[:ADDRESSES_MAX]:
            try:
                return _Stream(
                    await self._inner.connect_tcp(
                        address, port, timeout, local_address, socket_options
                    )
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError("the host has no address")

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("pages are not fetched from Unix sockets")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                yield part
        except (httpcore.TimeoutException, TimeoutError):
            raise httpx.ReadTimeout("the page fell silent") from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.ReadError(str(error)) from None

    async def aclose(self) -> None:
        await self._stream.aclose()


class GuardedTransport(httpx.AsyncBaseTransport):
    """A transport of httpx that pools connections by host name; each is dialled through the egress guard."""

    def __init__(self, egress: Egress, *, verify: bool = True, connections_max: int = 64) -> None:
        context = httpx.create_ssl_context(verify=verify, trust_env=False)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=connections_max,
            max_keepalive_connections=connections_max // 2,
            keepalive_expiry=15.0,
            network_backend=_Backend(egress),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        inner = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = await self._pool.handle_async_request(inner)
        except httpcore.TimeoutException as error:
            raise httpx.ConnectTimeout(str(error) or "the host did not answer in time") from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.ConnectError(str(error) or type(error).__name__) from None
        except httpcore.UnsupportedProtocol as error:
            raise httpx.UnsupportedProtocol(str(error)) from None
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()
