"""Hosts that code, cut and flood their answers, read by the fetcher as a browser would, and bounded."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairlead.net.egress import Egress
from fairlead.scrape.fetch.fetcher import Fetcher, FetchFailed
from fairlead.scrape.fetch.politeness import ROBOTS_MAX_BYTES, Politeness

pytestmark = pytest.mark.anyio

PAGE = b"<p>A page of some words.</p>" * 40


def answer(body: bytes, *lines: str, status: int = 200) -> bytes:
    head = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def raw_deflate(body: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(body) + deflate.flush()


@asynccontextmanager
async def host(
    pages: dict[str, bytes], *, flood: bytes = b"", asked: list[bytes] | None = None
) -> AsyncIterator[tuple[str, Fetcher]]:
    """A host that answers by path, one request a connection; behind each answer `flood`, until nobody reads it. The
    heads of requests are added to `asked`.
    """
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if asked is not None:
                asked.append(head)
            path = head.split(b" ")[1].decode()
            writer.write(pages.get(path, answer(b"", status=404)))
            await writer.drain()
            while flood:
                writer.write(flood)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    egress = Egress("127.0.0.0/8")
    fetcher = Fetcher(egress)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", fetcher
    finally:
        await fetcher.close()
        egress.close()
        server.close()
        await asyncio.wait_for(asyncio.gather(*serving), 5)


@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        ("gzip", gzip.compress(PAGE)),
        ("X-GZIP", gzip.compress(PAGE)),
        ("deflate", zlib.compress(PAGE)),
        ("deflate", raw_deflate(PAGE)),
        ("identity", PAGE),
    ],
    ids=["gzip", "gzip by its old name", "deflate", "deflate without its frame", "identity"],
)
async def test_every_coding_that_was_asked_for_is_read(coding: str, coded: bytes) -> None:
    pages = {"/": answer(coded, f"Content-Encoding: {coding}")}
    async with host(pages) as (url, fetcher):
        assert (await fetcher.fetch(f"{url}/")).body == PAGE


async def test_what_comes_behind_compressed_data_is_neither_kept_nor_waited_for() -> None:
    """The host sends a small page, and then for ever."""
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(PAGE)
    async with host({"/": head}, flood=b"x" * 65_536) as (url, fetcher):
        assert (await fetcher.fetch(f"{url}/", deadline_s=5)).body == PAGE


async def test_a_redirect_to_an_address_with_a_blank_is_followed() -> None:
    pages = {
        "/": answer(b"", "Location: /two words", status=302),
        "/two%20words": answer(PAGE),
    }
    async with host(pages) as (url, fetcher):
        fetched = await fetcher.fetch(f"{url}/")
        assert (fetched.url, fetched.body) == (f"{url}/two%20words", PAGE)


@pytest.mark.parametrize(
    "target", ["data:text/html,x", "mailto:a@b.example", "javascript:void(0)", "http://[", "//"]
)
async def test_a_redirect_to_what_is_no_page_is_a_failure_of_the_page(target: str) -> None:
    async with host({"/": answer(b"", f"Location: {target}", status=302)}) as (url, fetcher):
        with pytest.raises(FetchFailed) as failure:
            await fetcher.fetch(f"{url}/")
    assert failure.value.code in {"redirects", "status"}


async def test_a_cookie_goes_nowhere() -> None:
    asked: list[bytes] = []
    pages = {
        "/": answer(b"", "Set-Cookie: a=b; Path=/", "Location: /next", status=302),
        "/next": answer(PAGE),
    }
    async with host(pages, asked=asked) as (url, fetcher):
        assert (await fetcher.fetch(f"{url}/")).body == PAGE
    assert len(asked) == 2
    assert not any(b"cookie" in each.lower() for each in asked)


async def test_a_page_that_is_too_large_tells_its_beginning() -> None:
    for lines, body in (([], PAGE), (["Content-Encoding: gzip"], gzip.compress(PAGE))):
        async with host({"/": answer(body, *lines)}) as (url, fetcher):
            with pytest.raises(FetchFailed) as failure:
                await fetcher.fetch(f"{url}/", max_bytes=100)
        assert (failure.value.code, failure.value.begun) == ("too_large", PAGE[:100])


RULES = b"User-agent: *\nDisallow: /private\n"
LONG = RULES + b"# " + b"x" * ROBOTS_MAX_BYTES + b"\n"


@pytest.mark.parametrize(
    ("robots", "allowed"),
    [
        (answer(RULES), (True, False)),
        (answer(b"\xef\xbb\xbf" + RULES), (True, False)),
        (answer(LONG), (True, False)),
        (answer(LONG, status=404), (True, True)),
        (answer(LONG, status=503), (False, False)),
    ],
    ids=["plain", "byte order mark", "longer than is read", "none, at length", "busy, at length"],
)
async def test_robots_txt_counts_however_it_comes(
    robots: bytes, allowed: tuple[bool, bool]
) -> None:
    """RFC 9309: the first 500 KiB of a longer one count; the mark is no part of the first line."""
    async with host({"/robots.txt": robots}) as (url, fetcher):
        politeness = Politeness(fetcher)
        rules = await politeness.rules(f"{url}/")
        assert (rules.allows(f"{url}/open"), rules.allows(f"{url}/private/x")) == allowed
        await politeness.close()


async def test_a_site_that_cannot_be_reached_is_not_said_to_forbid() -> None:
    egress = Egress("127.0.0.0/8")
    fetcher = Fetcher(egress)
    politeness = Politeness(fetcher)
    rules = await politeness.rules("http://nobody.invalid/")
    refusal = rules.refusal("The site's robots.txt does not allow this address.")
    assert (rules.allows("http://nobody.invalid/"), refusal.code) == (False, "robots")
    assert "cannot be read" in refusal.reason
    assert "could not be reached" in refusal.reason
    await politeness.close()
    await fetcher.close()
    egress.close()
