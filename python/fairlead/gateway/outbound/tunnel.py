"""Control's own calls of providers through an outbound proxy: HTTP's CONNECT, or SOCKS5 (RFC 1928,
RFC 1929).

The proxy resolves the provider's name. The proxy's own address is checked against the address policy,
and so is a provider that is named by an address. A proxy that fails is `ProxyFailed`; nothing goes
past it.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpcore
import httpx

from fairlead import _core
from fairlead.gateway.outbound.table import Proxy
from fairlead.net.operator_egress import (
    POLICY,
    AddressForbidden,
    checked_addresses,
    drop_odd_location,
    trusted_tls,
)

HEAD_MAX_BYTES: Final = 16 * 1024

_ERRORS: Final[tuple[tuple[type[Exception], type[httpx.TransportError]], ...]] = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.TimeoutException, httpx.ReadTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ProtocolError, httpx.RemoteProtocolError),
    (httpcore.NetworkError, httpx.ReadError),
)


class ProxyFailed(httpx.ConnectError):
    """The proxy could not be used. The text says why and names no secret."""


class ProxyTransport(httpx.AsyncBaseTransport):
    """An httpx transport whose every connection goes through one proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trusted_tls(), network_backend=_Tunnels(proxy)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        sent = httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            answer = await self._pool.handle_async_request(sent)
        response = httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )
        drop_odd_location(response)
        return response

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx():
            async for part in self._answer.aiter_stream():
                yield part

    async def aclose(self) -> None:
        with _as_httpx():
            await self._answer.aclose()


@contextmanager
def _as_httpx() -> Iterator[None]:
    try:
        yield
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        kind = next(known for raised, known in _ERRORS if isinstance(error, raised))
        raise kind(str(error)) from error


class _Tunnels(httpcore.AsyncNetworkBackend):
    """Dials the proxy, and makes a tunnel to where the connection is to go."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as httpcore has it
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        host = host.removeprefix("[").removesuffix("]")
        if _is_address(host) and not _core.address_allowed(host, POLICY):
            raise AddressForbidden("the host is an address that is never dialled")
        stream = await self._dial(timeout, local_address, socket_options)
        tunnel = _Tunnel(self._proxy, stream, timeout)
        try:
            if self._proxy.scheme == "socks5":
                await tunnel.socks5(host, port)
            else:
                await tunnel.connect(host, port)
        except (httpcore.NetworkError, httpcore.TimeoutException) as error:
            await stream.aclose()
            raise ProxyFailed("The outbound proxy broke the connection.") from error
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def _dial(self, limit_s: float | None, *options: Any) -> httpcore.AsyncNetworkStream:
        unreached = "The outbound proxy cannot be reached."
        try:
            addresses = await checked_addresses(self._proxy.host, self._proxy.port)
        except httpx.ConnectError as error:
            raise ProxyFailed(unreached) from error
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._sockets.connect_tcp(address, self._proxy.port, limit_s, *options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise ProxyFailed(unreached) from failure

    async def sleep(self, seconds: float) -> None:
        await self._sockets.sleep(seconds)


class _Tunnel:
    """The words with a proxy before a connection is the provider's."""

    def __init__(
        self, proxy: Proxy, stream: httpcore.AsyncNetworkStream, timeout: float | None
    ) -> None:
        self._proxy, self._stream, self._timeout = proxy, stream, timeout

    async def connect(self, host: str, port: int) -> None:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
        if self._proxy.username is not None:
            login = f"{self._proxy.username}:{self._proxy.password or ''}".encode()
            head += f"Proxy-Authorization: Basic {base64.b64encode(login).decode()}\r\n"
        await self._stream.write(f"{head}\r\n".encode(), self._timeout)
        answer = b""
        # Byte by byte: what follows the head is the provider's.
        while not answer.endswith(b"\r\n\r\n") and len(answer) < HEAD_MAX_BYTES:
            answer += await self._read(1)
        status = answer[9:12]
        if not answer.startswith(b"HTTP/1.") or not status.isdigit():
            raise ProxyFailed("The outbound proxy's answer is not HTTP.")
        if status == b"407":
            raise ProxyFailed("The outbound proxy refused the gateway's credentials (407).")
        if status.startswith(b"5"):
            raise httpx.ConnectError("the outbound proxy could not connect to the provider")
        if not status.startswith(b"2"):
            raise ProxyFailed(
                f"The outbound proxy refused to connect to the provider ({status.decode()})."
            )

    async def socks5(self, host: str, port: int) -> None:
        has_login = self._proxy.username is not None
        await self._stream.write(b"\x05\x02\x00\x02" if has_login else b"\x05\x01\x00")
        version, method = await self._read(2)
        if version != 5 or method not in ((0, 2) if has_login else (0,)):
            raise ProxyFailed("The outbound proxy takes none of the gateway's ways to sign in.")
        if method == 2:
            await self._log_in()
        request = b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2, "big")
        await self._stream.write(request, self._timeout)
        version, reply, _, kind = await self._read(4)
        if reply in (1, 3, 4, 5, 6):
            raise httpx.ConnectError("the outbound proxy could not connect to the provider")
        if version != 5 or reply != 0:
            raise ProxyFailed("The outbound proxy refused to connect to the provider.")
        size = {1: 4, 4: 16}.get(kind) or (await self._read(1))[0]
        await self._read(size + 2)

    async def _log_in(self) -> None:
        username = (self._proxy.username or "").encode()
        password = (self._proxy.password or "").encode()
        parts = bytes([1, len(username)]) + username + bytes([len(password)]) + password
        await self._stream.write(parts, self._timeout)
        if (await self._read(2))[1] != 0:
            raise ProxyFailed("The outbound proxy refused the gateway's credentials.")

    async def _read(self, size: int) -> bytes:
        read = b""
        while len(read) < size:
            part = await self._stream.read(size - len(read), self._timeout)
            if not part:
                raise ProxyFailed("The outbound proxy closed the connection.")
            read += part
        return read


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _socks_address(host: str) -> bytes:
    if _is_address(host):
        packed = ipaddress.ip_address(host).packed
        return (b"\x01" if len(packed) == 4 else b"\x04") + packed
    return b"\x03" + bytes([len(host)]) + host.encode("ascii")
