"""A book (EPUB) as HTML: its chapters in the order of its spine."""

from __future__ import annotations

import posixpath
from typing import Final
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser

from fairlead import _core
from fairlead.scrape.document.archive import Archive
from fairlead.scrape.page.body import closed_elements
from fairlead.scrape.page.charset import decode
from fairlead.scrape.page.extract import Unreadable

MIME_TYPE: Final = "application/epub+zip"
CHAPTERS_MAX: Final = 2_000
HTML_MAX_CHARS: Final = 20_000_000

_CONTAINER: Final = "META-INF/container.xml"
_ROOTFILE: Final = "{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_OPF: Final = "{http://www.idpf.org/2007/opf}"
_TITLE: Final = "{http://purl.org/dc/elements/1.1/}title"


def html_of(archive: Archive) -> tuple[str, str, bool]:
    """The book's title, its chapters, and whether some are left out for their size. `Unreadable`."""
    rootfile = archive.tree(_CONTAINER).find(f".//{_ROOTFILE}")
    name = rootfile.get("full-path", "") if rootfile is not None else ""
    if name not in archive.names:
        raise Unreadable("The book does not say where its parts are.")
    if "META-INF/encryption.xml" in archive.names and "META-INF/rights.xml" in archive.names:
        raise Unreadable("The document is encrypted.")
    package = archive.tree(name)
    files = {
        item.get("id", ""): posixpath.normpath(
            posixpath.join(posixpath.dirname(name), unquote(item.get("href", "")))
        )
        for item in package.iter(f"{_OPF}item")
    }
    spine = [files.get(each.get("idref", ""), "") for each in package.iter(f"{_OPF}itemref")]
    parts: list[str] = []
    remaining, is_cut = HTML_MAX_CHARS, len(spine) > CHAPTERS_MAX
    for chapter in spine[:CHAPTERS_MAX]:
        if chapter not in archive.names:
            continue
        html = _body(archive.read(chapter))
        if len(html) > remaining:
            is_cut = True
            break
        remaining -= len(html)
        parts.append(f"<section>{html}</section>")
    title = package.find(f".//{_TITLE}")
    return " ".join((title.text or "").split()) if title is not None else "", "".join(parts), is_cut


def _body(chapter: bytes) -> str:
    text, _ = decode(chapter, "application/xhtml+xml")
    parser = LexborHTMLParser(_core.flattened(closed_elements(text)))
    # Pictures are files of the book, which have no address.
    parser.strip_tags(["script", "style", "img"], recursive=True)
    return (parser.body.inner_html if parser.body is not None else None) or ""
