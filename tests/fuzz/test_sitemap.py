"""Sitemaps of any bytes: addresses or a reason, in linear time."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from fairlead.scrape.address import canonical
from fairlead.scrape.page.extract import Unreadable
from fairlead.scrape.page.sitemap import read_sitemap
from tests.fuzz.budget import at_most, budget_of

HERE = "http://a.example/sitemap.xml"
PIECES = st.one_of(
    st.sampled_from(
        [
            "<loc>",
            "</loc>",
            "<LOC>",
            "</Loc>",
            "<![CDATA[",
            "]]>",
            "<sitemapindex>",
            "<urlset>",
            " ",
            "\n",
            "<",
            ">",
            "http://a.example/",
            "//",
            "/x",
            "?q=1&amp;r=2",
            "&#",
            "&#x",
            ";",
            "&amp;",
            "[",
            "]",
            "@",
            ":",
            "\x00",
            "İ",
        ]
    ),
    st.text(),
)
TEXTS = st.lists(PIECES, max_size=60).map("".join)


def check(body: bytes) -> None:
    try:
        told = read_sitemap(body, HERE, 20)
    except Unreadable:
        return
    assert isinstance(told["isIndex"], bool)
    assert len(told["addresses"]) == len(set(told["addresses"])) <= 20
    assert all(canonical(address) == address for address in told["addresses"])


@budget_of(1 / 3)
@given(TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_text_that_looks_like_one(body: bytes) -> None:
    check(body)


@budget_of(1 / 3)
@given(st.one_of(st.binary(), st.binary().map(gzip.compress), st.binary().map(b"\x1f\x8b".__add__)))
def test_any_bytes_packed_or_not(body: bytes) -> None:
    check(body)


@budget_of(1 / 3)
@given(st.lists(PIECES, min_size=1, max_size=4), st.integers(1, 200_000))
def test_what_is_repeated_takes_linear_time(pieces: list[str], times: int) -> None:
    body = "".join(pieces).encode("utf-8", "replace")
    with at_most(5.0):
        check((body * times)[:1_000_000])
