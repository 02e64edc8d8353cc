"""Why a connection failed, from the errors of real sockets; and addresses without their secrets."""

from __future__ import annotations

import asyncio
import socket
import ssl

import httpx
import pytest

from fairlead.gateway.providers.client import fetch, open_client
from fairlead.net.connection_fault import cause_of, shown_address


async def fault(url: str) -> str:
    async with open_client() as client:
        with pytest.raises(httpx.HTTPError) as failed:
            await fetch(client, url, {})
    return cause_of(failed.value)


@pytest.mark.anyio
async def test_a_port_at_which_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert await fault(f"http://127.0.0.1:{port}/") == "the connection was refused"


@pytest.mark.anyio
async def test_a_name_that_does_not_resolve() -> None:
    assert await fault("http://nobody.invalid/") == "the name does not resolve"
    assert await fault(f"http://{'x' * 64}.invalid/") == "the name does not resolve"


@pytest.mark.anyio
async def test_a_server_that_does_not_speak_tls() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (await fault(f"https://127.0.0.1:{port}/")).startswith("TLS failed (")


def test_each_cause_has_words() -> None:
    certificate = ssl.SSLCertVerificationError(1, "x")
    certificate.verify_message = "self-signed certificate"
    assert cause_of(certificate) == "the certificate is not trusted (self-signed certificate)"
    assert cause_of(TimeoutError()) == "no connection was accepted in time"
    assert cause_of(OSError(113, "No route to host")) == "no route to host"
    assert cause_of(ValueError()) == "the connection failed"
    wrapped = httpx.ConnectError("all attempts failed")
    wrapped.__cause__ = ConnectionRefusedError()
    assert cause_of(wrapped) == "the connection was refused"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h/v1/models", "https://h/v1/models"),
        ("https://user:secret@h:8/v1?key=secret#secret", "https://h:8/v1"),
        ("http://[::1]:8/\x1b[31m", "http://[::1]:8/[31m"),
    ],
)
def test_an_address_is_shown_without_secrets(url: str, shown: str) -> None:
    assert shown_address(url) == shown
    assert "secret" not in shown_address("https://h/secret", with_path=False)
