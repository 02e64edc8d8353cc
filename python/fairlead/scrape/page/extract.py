"""From the bytes of an answer to what is told of it: a pure function, run in a process of its own
(`page.worker`), because neither the charset nor the tree of a hostile page ends in any time that we choose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

from fairlead.scrape.charset import decode
from fairlead.scrape.page.content import main_content, prune
from fairlead.scrape.page.markdown import Style, markdown_of, plain_of
from fairlead.scrape.page.metadata import metadata_of
from fairlead.scrape.page.nesting import flattened
from fairlead.scrape.page.parts import base_of, code_of, images_of, links_of, tables_of
from fairlead.scrape.page.tree import tree_of

_HTML: Final = frozenset(["text/html", "application/xhtml+xml", ""])
_TEXTUAL: Final = ("text/", "application/json", "application/xml", "application/ld+json")


class Unreadable(Exception):
    """Why there is nothing to read in an answer; a sentence."""


@dataclass(frozen=True, slots=True)
class Source:
    """An answer's body. `content_type` is the header's value, `url` where the body came from."""

    url: str
    body: bytes
    content_type: str = "text/html"
    redirects: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Want:
    """What is asked of a page: `form` is `html`, `markdown` or `text`; `lists` names what `formats`
    shall have of `links`, `tables`, `code` and `images`.
    """

    form: str = "html"
    only_main_content: bool = True
    fit_markdown: bool = False
    lists: list[str] = field(default_factory=list)


def extract(source: Source, want: Want) -> tuple[dict[str, Any], list[str]]:
    """The answer's document and the page's links. `Unreadable` for what is no text."""
    kind = source.content_type.partition(";")[0].strip().lower()
    if kind not in _HTML and not kind.startswith(_TEXTUAL):
        raise Unreadable(f"The address holds {kind[:80]}, which is not read here.")
    text, charset = decode(source.body, source.content_type)
    metadata: dict[str, Any] = {"contentType": kind, "charset": charset}
    if source.redirects:
        metadata["redirects"] = source.redirects
    if kind not in _HTML:
        if want.form == "markdown" and kind != "text/markdown":
            text = f"```\n{text}\n```" if text.strip() else ""
        return _document(source, "", text, want, metadata), []
    parser = LexborHTMLParser(flattened(text))
    metadata |= metadata_of(parser)
    base = base_of(parser, source.url)
    links = links_of(parser, base)
    body = tree_of(parser)
    root = body
    if body is not None and (want.only_main_content or want.fit_markdown):
        root = main_content(body)
    if root is not None and want.fit_markdown:
        prune(root)
    if want.form == "html":
        content = text
        if want.only_main_content and root is not None:
            content = root.html(base)
    elif root is None:
        content = ""
    elif want.form == "markdown":
        content = markdown_of(root, Style(base, images=not want.fit_markdown))
    else:
        content = plain_of(root)
    document = _document(source, str(metadata.get("title", "")), content, want, metadata)
    formats: dict[str, Any] = {}
    if "links" in want.lists:
        formats["links"] = links
    if root is not None:
        if "tables" in want.lists:
            formats["tables"] = tables_of(root)
        if "code" in want.lists:
            formats["code"] = code_of(root)
        if "images" in want.lists:
            formats["images"] = images_of(root, base)
    if formats:
        document["formats"] = formats
    return document, [link["url"] for link in links]


def _document(
    source: Source, title: str, content: str, want: Want, metadata: dict[str, Any]
) -> dict[str, Any]:
    return {
        "url": source.url,
        "title": title,
        "content": content,
        "contentType": want.form,
        "metadata": metadata,
    }
