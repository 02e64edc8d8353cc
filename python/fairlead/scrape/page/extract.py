"""From the bytes of an answer to what is told of it: a pure function, run in a process of its own
(`page.worker`), because neither the charset nor the tree of a hostile page ends in any time that we choose.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from selectolax.lexbor import LexborHTMLParser

from fairlead import _core
from fairlead.scrape.page.charset import decode
from fairlead.scrape.page.contacts import contacts_of
from fairlead.scrape.page.css import fill_ratio, invalid_selectors, records_of, text_of
from fairlead.scrape.page.fence import fenced
from fairlead.scrape.page.links import base_of, links_of
from fairlead.scrape.page.metadata import metadata_of
from fairlead.scrape.page.outline import outline_of

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
class ReadOptions:
    """What is asked of a page: `form` is `html`, `markdown` or `text`; `lists` names what `formats`
    shall have of `links`, `tables`, `code`, `images` and `contacts`, and `forms` in which other forms it shall have
    the content too (`rawHtml` is the page as it came). A `fingerprint` changes when the content's words do.
    `is_document` asks for a document of any kind (`scrape.document`) in place of a page.
    """

    form: str = "html"
    only_main_content: bool = True
    fit_markdown: bool = False
    lists: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    fingerprint: bool = False
    is_document: bool = False


def extract(source: Source, want: ReadOptions) -> tuple[dict[str, Any], list[str]]:
    """The answer's document and the page's links. `Unreadable` for what is no text."""
    kind = source.content_type.partition(";")[0].strip().lower()
    if kind not in _HTML and not kind.startswith(_TEXTUAL):
        raise Unreadable(f"The address holds {kind[:80]}, which is not read here.")
    text, charset = decode(source.body, source.content_type)
    metadata: dict[str, Any] = {"contentType": kind, "charset": charset}
    if source.redirects:
        metadata["redirects"] = source.redirects
    if kind not in _HTML:
        told = {form: _told_as(form, text, kind) for form in [want.form, *want.forms]}
        document = _document(source, "", told[want.form], want, metadata)
        if want.forms:
            document["formats"] = {form: told[form] for form in want.forms}
        if want.fingerprint:
            document["fingerprint"] = _fingerprint(text)
        return document, []
    parser = LexborHTMLParser(_core.flattened(text))
    metadata |= metadata_of(parser)
    base = base_of(parser, source.url)
    is_whole = want.form == "html" and not want.only_main_content
    held = _held(parser, base, "" if is_whole else want.form, want)
    content = text if is_whole else held["content"]
    links = links_of(held["links"], base)
    document = _document(source, str(metadata.get("title", "")), content, want, metadata)
    formats: dict[str, Any] = {
        name: held[name] for name in ("tables", "code", "images") if name in held
    }
    if "links" in want.lists:
        formats["links"] = links
    if "contacts" in want.lists:
        formats["contacts"] = contacts_of(
            text_of(parser.body) if parser.body else "", held["links"]
        )

    def content_as(form: str) -> str:
        if form == "rawHtml" or (form == "html" and not want.only_main_content):
            return text
        told: str = content if form == want.form else _held(parser, base, form, want)["content"]
        return told

    formats |= {form: content_as(form) for form in want.forms}
    if formats:
        document["formats"] = formats
    if want.fingerprint:
        document["fingerprint"] = _fingerprint(content_as("text"))
    return document, [link["url"] for link in links]


def _told_as(form: str, text: str, kind: str) -> str:
    if form != "markdown" or kind == "text/markdown":
        return text
    return fenced(text) if text.strip() else ""


def _fingerprint(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()


def select(url: str, html: str, plan: dict[str, Any] | None) -> dict[str, Any]:
    """What a plan of selectors (`page.css`) finds in a page: `records` and their `fill_ratio`, or `wrongs` where the
    plan is none. Without a plan, what is needed to make one: the page's `outline`, and whether it `is_blank`.
    """
    if plan is not None and (wrongs := invalid_selectors(plan)):
        return {"wrongs": wrongs}
    parser = LexborHTMLParser(_core.flattened(html))
    if plan is None:
        body = parser.body
        return {"outline": outline_of(parser), "is_blank": body is None or not text_of(body)}
    records = records_of(parser, base_of(parser, url), plan)
    return {"wrongs": [], "records": records, "fill_ratio": fill_ratio(records)}


def _held(parser: LexborHTMLParser, base: str, form: str, want: ReadOptions) -> dict[str, Any]:
    """What the page's body holds. The parser of the standard is Lexbor's; what it wrote out again, in
    order and with every element closed, is read by our own code, which can then be simple and fast.
    """
    body = parser.body
    html = (body.html if body is not None else None) or ""
    is_main = want.only_main_content or want.fit_markdown
    told = _core.read_page(html, base, form, is_main, want.fit_markdown, want.lists)
    held: dict[str, Any] = orjson.loads(told)
    return held


def _document(
    source: Source, title: str, content: str, want: ReadOptions, metadata: dict[str, Any]
) -> dict[str, Any]:
    return {
        "url": source.url,
        "title": title,
        "content": content,
        "contentType": want.form,
        "metadata": metadata,
    }
