"""One GET of a small JSON document from an untrusted https URL, through the egress guard."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass

import h11

from fairlead import __version__
from fairlead.net.egress import AddressForbidden, Egress, NameUnknown

DEADLINE_S = 5.0
BODY_MAX_BYTES = 16 * 1024
HEAD_MAX_BYTES = 32 * 1024
READ_BYTES = 16 * 1024


class FetchFailed(Exception):
    """The reason why there is no document; the message reveals nothing about this network."""


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    body: bytes
    cache_control: str


async def fetch(egress: Egress, address: str) -> FetchedDocument:
    """The document. `FetchFailed`, or `AddressRefused` for an address that is not dialled."""
    url = egress.normalise_target(address)
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await _get(egress, url)
    except TimeoutError:
        raise FetchFailed("it did not arrive in time") from None
    except (AddressForbidden, NameUnknown):
        # The difference would reveal details of this network.
        raise FetchFailed("the host cannot be reached") from None
    except ssl.SSLError:
        raise FetchFailed("the host's certificate is not valid") from None
    except (h11.RemoteProtocolError, OSError):
        raise FetchFailed("the host cannot be reached") from None


async def _get(egress: Egress, url: str) -> FetchedDocument:
    host, _, path = url.partition("//")[2].partition("/")
    request = h11.Request(
        method="GET",
        target=f"/{path}",
        headers=[
            ("host", host),
            ("accept", "application/json"),
            ("user-agent", f"fairlead/{__version__}"),
            ("connection", "close"),
        ],
    )
    reader, writer = await egress.connect(url)
    try:
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX_BYTES)
        writer.write((http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b""))
        await writer.drain()
        head = await _next_event(http, reader)
        while isinstance(head, h11.InformationalResponse):
            head = await _next_event(http, reader)
        if not isinstance(head, h11.Response):
            raise FetchFailed("the host said nothing")
        cache_control = _judge_head(head)
        body = b""
        while isinstance(event := await _next_event(http, reader), h11.Data):
            body += bytes(event.data)
            if len(body) > BODY_MAX_BYTES:
                raise FetchFailed(f"it is larger than {BODY_MAX_BYTES // 1024} KiB")
        return FetchedDocument(body, cache_control)
    finally:
        writer.transport.abort()


def _judge_head(head: h11.Response) -> str:
    if head.status_code != 200:
        raise FetchFailed(f"its host answered {head.status_code}")
    kinds = [value for name, value in head.headers if name == b"content-type"]
    essence = kinds[0].decode("latin-1").partition(";")[0].strip().lower() if kinds else ""
    is_json = essence.startswith("application/") and (
        essence == "application/json" or essence.endswith("+json")
    )
    if len(kinds) != 1 or not is_json:
        raise FetchFailed("it is not application/json")
    return ", ".join(
        value.decode("latin-1") for name, value in head.headers if name == b"cache-control"
    )


async def _next_event(http: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await reader.read(READ_BYTES))
    if not isinstance(event, h11.Event):
        raise FetchFailed("the connection ended before it was whole")
    return event
