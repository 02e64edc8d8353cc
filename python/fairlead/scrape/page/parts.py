"""Lists of what stands in a page: links, images, tables, code blocks."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from fairlead.scrape.address import BadAddress, canonical
from fairlead.scrape.page.markdown import language_of, rows_of
from fairlead.scrape.page.tree import Node

LINKS_MAX: Final = 10_000
IMAGES_MAX: Final = 2_000
TABLES_MAX: Final = 200
ROWS_MAX: Final = 5_000
CODE_MAX: Final = 500
_IMG, _TABLE, _CAPTION, _PRE = (frozenset([tag]) for tag in ("img", "table", "caption", "pre"))


def base_of(tree: LexborHTMLParser, url: str) -> str:
    """What relative addresses of the page are relative to."""
    node = tree.css_first("base[href]")
    try:
        return canonical(node.attributes.get("href") or "", base=url) if node is not None else url
    except BadAddress:
        return url


def links_of(tree: LexborHTMLParser, base: str) -> list[dict[str, str]]:
    """`url` and `text` of each http(s) link, in order, each address once."""
    found: dict[str, str] = {}
    for node in tree.css("a[href], area[href]"):
        href = (node.attributes.get("href") or "").strip()
        if not href or href.startswith("#"):
            continue
        try:
            url = canonical(href.replace(" ", "%20"), base=base)
        except BadAddress:
            continue
        if url not in found:
            found[url] = " ".join(node.text(deep=True).split())[:500]
            if len(found) >= LINKS_MAX:
                break
    return [{"url": url, "text": text} for url, text in found.items()]


def images_of(root: Node, base: str) -> list[dict[str, str]]:
    """`url` and `alt` of each image, in order, each address once."""
    found: dict[str, str] = {}
    for node in root.find(_IMG):
        try:
            url = urljoin(base, (node.attributes.get("src") or "").strip())
        except ValueError:
            continue
        if url.startswith(("http://", "https://")) and url not in found:
            found[url] = (node.attributes.get("alt") or "").strip()[:500]
            if len(found) >= IMAGES_MAX:
                break
    return [{"url": url, "alt": alt} for url, alt in found.items()]


def tables_of(root: Node) -> list[dict[str, Any]]:
    """`caption`, `headers` and `rows` of each table that holds data."""
    found: list[dict[str, Any]] = []
    for table in islice(root.find(_TABLE), TABLES_MAX):
        if next(table.find(_TABLE), None) is not None or table.attributes.get("role") in {
            "presentation",
            "none",
        }:
            continue
        rows = rows_of(table)[:ROWS_MAX]
        texts = [[cell.line() for cell in row] for row in rows]
        has_head = bool(rows) and all(cell.tag == "th" for cell in rows[0])
        caption = next(table.find(_CAPTION), None)
        found.append(
            {
                "caption": caption.line() if caption is not None else "",
                "headers": texts[0] if has_head else [],
                "rows": texts[1:] if has_head else texts,
            }
        )
    return found


def code_of(root: Node) -> list[dict[str, str]]:
    """`language` and `code` of each block of code."""
    return [
        {"language": language_of(node), "code": node.raw_text().strip("\r\n")}
        for node in islice(root.find(_PRE), CODE_MAX)
    ]
