"""The targets of a page's links, in the spelling of `address.canonical`."""

from __future__ import annotations

import re
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

from fairlead.net.url import split_url
from fairlead.scrape.address import URL_MAX_CHARS, BadAddress, canonical

# A path on the page's own host that is canonical already: most links of most pages.
_PLAIN: Final = re.compile(r"/(?![/.])(?:(?!/\.)[!-\[\]-~])*", re.ASCII)


def base_of(tree: LexborHTMLParser, url: str) -> str:
    """The base of the page's relative addresses: its `<base>`, else its own address."""
    node = tree.css_first("base[href]")
    try:
        return canonical(node.attributes.get("href") or "", base=url) if node is not None else url
    except BadAddress:
        return url


def links_of(written: list[dict[str, Any]], base: str) -> list[dict[str, str]]:
    """`url` and `text` of each http(s) link, in order, each address once."""
    parts = split_url(base)
    origin = f"{parts.scheme}://{parts.netloc}"
    remaining = URL_MAX_CHARS - len(origin)
    found: dict[str, str] = {}
    for link in written:
        href = link["href"]
        if "#" not in href and len(href) <= remaining and _PLAIN.fullmatch(href):
            url = origin + href
        else:
            try:
                url = canonical(href.replace(" ", "%20"), base=base)
            except BadAddress:
                continue
        found.setdefault(url, link["text"])
    return [{"url": url, "text": text} for url, text in found.items()]
