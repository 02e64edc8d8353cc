"""URLs of callers and sites are split in time that grows with their length, in every module."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.errors import UpstreamInvalid
from fairlead.net.host import AddressRefused, split_address
from fairlead.net.url import BEYOND_ASCII_MAX_CHARS, join_url, split_url
from fairlead.scrape.address import BadAddress, canonical
from fairlead.scrape.map.sitemap import sitemap_urls
from fairlead.search.engines import read_results
from tests.fuzz.budget import at_most

ROOT: Final = Path(__file__).parents[3] / "python/fairlead"
# The operator's own settings and commands.
OWN: Final = {"settings", "cli", "process", "standin"}
# Each pair of these takes the place of the pair before it when the text is normalised.
MARKS: Final = "\u0301\u0316" * 60_000
LONG: Final = f"https://a{MARKS}.example/"


@pytest.mark.parametrize("split", [split_url, lambda text: join_url("https://a.example/", text)])
def test_a_url_is_split_in_linear_time(split: Any) -> None:
    with at_most(0.5):
        for text in (LONG, f"//{MARKS}", f"/\t/{MARKS}", f"x://{MARKS}@a", f"https://a/{MARKS}"):
            with pytest.raises(ValueError, match="too long"):
                split(text)
    with at_most(2):
        for text in (f"https://a{MARKS}"[:BEYOND_ASCII_MAX_CHARS], "https://a/" + "x" * 1_000_000):
            split(text)
    assert split_url("https://bücher.example/é").path == "/é"


def test_what_sites_and_callers_write_is_refused_at_once() -> None:
    with at_most(1):
        with pytest.raises(BadAddress):
            canonical(LONG, base="https://a.example/")
        with pytest.raises(AddressRefused):
            split_address(LONG)


class _Rules:
    sitemaps: Final = [LONG] * 50


class _Site:
    """A site whose robots.txt names such sitemaps."""

    politeness: Any = None

    async def rules(self, _: str) -> _Rules:
        return _Rules()


@pytest.mark.anyio
async def test_the_sitemaps_of_a_robots_txt_cost_nothing() -> None:
    site: Any = _Site()
    site.politeness = site
    with at_most(1):
        assert await sitemap_urls(site, "https://a.example/", 10) == []


def test_a_result_with_an_odd_address_leaves_the_others() -> None:
    rows = b",".join(
        b'{"title": "t", "content": "c", "url": "%s"}' % url
        for url in (b"https://[", b"https://a.example/1", b"https://[::1/x", b"ftp://a.example")
    )
    found = read_results("searxng", b'{"results": [%s]}' % rows)
    assert [each.url for each in found] == ["https://a.example/1"]
    with pytest.raises(UpstreamInvalid):
        read_results("searxng", b'{"results": [1]}')


def test_no_other_module_splits_urls() -> None:
    found = set()
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = (
                {each.name for each in node.names}
                if isinstance(node, ast.ImportFrom) and node.module == "urllib.parse"
                else set()
            )
            if names & {"urlsplit", "urlparse", "urljoin", "urldefrag"}:
                found.add(name)
            if isinstance(node, ast.ImportFrom) and node.module == "urllib":
                found.add(name)
    assert {name for name in found if name.split("/")[0] not in OWN} == {"net/url.py"}
