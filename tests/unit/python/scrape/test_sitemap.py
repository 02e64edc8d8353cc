"""Sitemaps: what is read of them, packed or not, and that no text makes the reading long."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from fairlead.scrape.map.sitemap import sitemap_urls
from fairlead.scrape.page import sitemap as sitemap_module
from fairlead.scrape.page.extract import Unreadable
from fairlead.scrape.page.sitemap import PLACE_MAX_BYTES, read_sitemap
from fairlead.scrape.scraper import scraper_of
from tests.fuzz.budget import at_most

HERE = "http://a.example/sitemap.xml"


def addresses(text: str | bytes, most: int = 100) -> list[str]:
    body = text.encode() if isinstance(text, str) else text
    found: list[str] = read_sitemap(body, HERE, most)["addresses"]
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<loc>http://a.example/1</loc><loc>http://a.example/2</loc>", ["/1", "/2"]),
        ("<LOC>\n  http://a.example/1\t</Loc>", ["/1"]),
        ("<loc><![CDATA[http://a.example/1?a=1&b=2]]></loc>", ["/1?a=1&b=2"]),
        ("<loc> <![CDATA[ http://a.example/1 ]]> </loc>", ["/1"]),
        ("<loc>http://a.example/?a=1&amp;b=2</loc>", ["/?a=1&b=2"]),
        ("<loc>/relative</loc>", ["/relative"]),
        ("<loc>http://a.example/1</loc><loc>http://a.example/1</loc>", ["/1"]),
        ("<loc><loc>http://a.example/1</loc>", ["/1"]),
        ("<loc></loc><loc> </loc><loc>ftp://a/</loc><loc>http://a.example/1</loc>", ["/1"]),
        ("<loc>http://a.example/1", []),
        ("<loc><![CDATA[http://a.example/1</loc>", []),
        ("<loc>http://a.example/<b>1</b></loc>", []),
        ("<image:loc>http://a.example/1</image:loc>", []),
        ("<loc>http://a.example/" + "x" * PLACE_MAX_BYTES + "</loc>", []),
        ("<loc>http://a.example/é</loc>", ["/é"]),
    ],
)
def test_what_is_read(text: str, found: list[str]) -> None:
    assert addresses(text) == [f"http://a.example{path}" for path in found]


def test_an_index_and_a_limit() -> None:
    text = "".join(f"<loc>http://a.example/{number}</loc>" for number in range(10))
    assert read_sitemap(f"<?xml?><SitemapIndex>{text}".encode(), HERE, 3) == {
        "isIndex": True,
        "addresses": [f"http://a.example/{number}" for number in range(3)],
    }
    assert read_sitemap(text.encode(), HERE, 3)["isIndex"] is False


@pytest.mark.parametrize("name", ["utf-8-sig", "utf-16"])
def test_a_mark_of_the_byte_order_is_read(name: str) -> None:
    assert addresses("<loc>http://a.example/1</loc>".encode(name)) == ["http://a.example/1"]


def test_a_packed_sitemap_is_unpacked_whatever_it_is_called() -> None:
    assert addresses(gzip.compress(b"<loc>http://a.example/1</loc>")) == ["http://a.example/1"]


def test_what_is_packed_wrongly_or_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreadable, match="broken"):
        addresses(b"\x1f\x8bno gzip")
    monkeypatch.setattr(sitemap_module, "UNPACKED_MAX_BYTES", 1000)
    assert addresses(gzip.compress(b"<loc>http://a.example/1</loc>".ljust(1000))) != []
    with pytest.raises(Unreadable, match="larger than 1000 bytes"):
        addresses(gzip.compress(b" " * 1_000_000))
    # What was cut off in between is read as far as it goes.
    assert zlib.decompressobj(wbits=31).decompress(gzip.compress(b"x")[:-8]) == b"x"


@pytest.mark.parametrize(
    "text",
    [
        b"<loc>" + b" " * 1_000_000 + b"x",
        b"<loc>" * 200_000,
        (b"<loc>" + b" " * 3000) * 300,
        b"<loc><![CDATA[" * 70_000,
        b"<loc>" + b"]]>" * 300_000,
        b"<loc>" + b"&#" * 500_000 + b"</loc>",
        b"<loc>" + b"&" * 4000 + b"</loc>",
        b"<loc>&#" + b"9" * 4000 + b";</loc>",
        b"<loc>http://" + b"[" * 3000 + b"</loc>",
        b"<loc>http://a/" + b"../" * 1000 + b"</loc>",
    ],
)
def test_no_text_takes_long(text: bytes) -> None:
    with at_most(5.0):
        addresses(text)


class _Sitemaps(BaseHTTPRequestHandler):
    files: dict[str, bytes] = {}  # noqa: RUF012 - set by the test

    def do_GET(self) -> None:
        body = self.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        """Nothing is written to the test's output."""


@pytest.fixture
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sitemaps)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.anyio
async def test_the_files_of_an_index_are_read_and_one_that_is_broken_leaves_the_others(
    scraping, origin: str
) -> None:
    _Sitemaps.files = {
        "/sitemap.xml": b"<sitemapindex>"
        + "".join(
            f"<loc>{origin}/{name}</loc>" for name in ("a.xml.gz", "b.xml", "c.xml", "d.xml")
        ).encode(),
        "/a.xml.gz": gzip.compress(f"<loc>{origin}/a</loc>".encode()),
        "/b.xml": b"\x1f\x8bbroken",
        "/c.xml": b"<loc>" + b" " * 2000 + b"x",
        "/d.xml": f"<loc>{origin}/d</loc><loc>{origin}/a</loc><loc>{origin}/e</loc>".encode(),
    }
    scraper = scraper_of(scraping.services)
    assert await sitemap_urls(scraper, origin, 10) == [f"{origin}/{each}" for each in "ade"]
    assert await sitemap_urls(scraper, origin, 2) == [f"{origin}/{each}" for each in "ad"]


@pytest.mark.anyio
async def test_control_answers_while_a_hostile_sitemap_is_mapped(scraping, origin: str) -> None:
    """A few hundred blanks took a pattern of four neighbouring repetitions minutes, in the loop of everything."""
    _Sitemaps.files = {"/sitemap.xml": b"<urlset><loc>" + b" " * 2000 + b"x"}
    began_s = time.monotonic()
    answer = await scraping.ask("POST", "/api/map", {"url": f"{origin}/", "sitemapsOnly": True})
    assert answer["data"]["links"] == []
    assert time.monotonic() - began_s < 30
