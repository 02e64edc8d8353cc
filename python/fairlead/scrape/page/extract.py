"""From the bytes of an HTTP answer to its document: a pure function, run in a separate process (`page/worker.py`),
because a hostile page can take any time to decode and to parse.
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
    """An answer that cannot be read; the text is a sentence with the reason."""


@dataclass(frozen=True, slots=True)
class Source:
    """The body of an answer. `content_type` is the header's value, `url` where the body came from."""

    url: str
    body: bytes
    content_type: str = "text/html"
    redirects: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of reading a page.

    `form` is `html`, `markdown` or `text`; `lists` names which of `links`, `tables`, `code`, `images` and
    `contacts` to return in `formats`, and `forms` which further forms of the content (`rawHtml` is the page
    unchanged). With `fingerprint`, the result has one that changes with the words of the content. `is_document`
    treats the input as a document of any kind (`scrape.document`) in place of a page.
    """

    form: str = "html"
    only_main_content: bool = True
    fit_markdown: bool = False
    lists: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    fingerprint: bool = False
    is_document: bool = False
    include_tags: list[str] = field(default_factory=list)
    exclude_tags: list[str] = field(default_factory=list)
    remove_base64_images: bool = False
    looks_for_shell: bool = False

    @property
    def edits(self) -> bool:
        """Whether elements are chosen or left out before the page is read (`page/selection.py`)."""
        return bool(self.include_tags or self.exclude_tags or self.remove_base64_images)


def extract(source: Source, options: ReadOptions) -> tuple[dict[str, Any], list[str]]:
    """The answer's document and the page's links. `Unreadable` for what is no text."""
    kind = source.content_type.partition(";")[0].strip().lower()
    if kind not in _HTML and not kind.startswith(_TEXTUAL):
        raise Unreadable(f"The address holds {kind[:80]}, which is not supported.")
    text, charset = decode(source.body, source.content_type)
    metadata: dict[str, Any] = {"contentType": kind, "charset": charset}
    if source.redirects:
        metadata["redirects"] = source.redirects
    if kind not in _HTML:
        texts = {form: _text_as(form, text, kind) for form in [options.form, *options.forms]}
        document = _document(source, "", texts[options.form], options, metadata)
        if options.forms:
            document["formats"] = {form: texts[form] for form in options.forms}
        if options.fingerprint:
            document["fingerprint"] = _fingerprint(text)
        return document, []
    parser = LexborHTMLParser(_core.flattened(text))
    metadata |= metadata_of(parser)
    base = base_of(parser, source.url)
    is_whole = options.form == "html" and not options.only_main_content
    body = _read_body(parser, base, "" if is_whole else options.form, options)
    content = text if is_whole else body["content"]
    links = links_of(body["links"], base)
    document = _document(source, str(metadata.get("title", "")), content, options, metadata)
    formats: dict[str, Any] = {
        name: body[name] for name in ("tables", "code", "images") if name in body
    }
    if "links" in options.lists:
        formats["links"] = links
    if "contacts" in options.lists:
        formats["contacts"] = contacts_of(
            text_of(parser.body) if parser.body else "", body["links"]
        )

    def content_as(form: str) -> str:
        if form == "rawHtml" or (form == "html" and not options.only_main_content):
            return text
        read: str = (
            content if form == options.form else _read_body(parser, base, form, options)["content"]
        )
        return read

    formats |= {form: content_as(form) for form in options.forms}
    if formats:
        document["formats"] = formats
    if options.fingerprint:
        document["fingerprint"] = _fingerprint(content_as("text"))
    return document, [link["url"] for link in links]


def _text_as(form: str, text: str, kind: str) -> str:
    if form != "markdown" or kind == "text/markdown":
        return text
    return fenced(text) if text.strip() else ""


def _fingerprint(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()


def select(url: str, html: str, plan: dict[str, Any] | None) -> dict[str, Any]:
    """Applies a plan of selectors (`page/css.py`) to a page: returns `records` and their `fill_ratio`, or
    `problems` of an invalid plan.

    Without a plan, returns the material to make one: the page's `outline`, and whether it `is_blank`.
    """
    if plan is not None and (problems := invalid_selectors(plan)):
        return {"problems": problems}
    parser = LexborHTMLParser(_core.flattened(html))
    if plan is None:
        body = parser.body
        return {"outline": outline_of(parser), "is_blank": body is None or not text_of(body)}
    records = records_of(parser, base_of(parser, url), plan)
    return {"problems": [], "records": records, "fill_ratio": fill_ratio(records)}


def _read_body(
    parser: LexborHTMLParser, base: str, form: str, options: ReadOptions
) -> dict[str, Any]:
    """Content, links and lists of the page's body. Lexbor parses by the standard and writes the tree out again,
    with every element closed; that text is read by our own code, which can then be simple and fast.
    """
    body = parser.body
    html = (body.html if body is not None else None) or ""
    is_main = options.only_main_content or options.fit_markdown
    read: dict[str, Any] = orjson.loads(
        _core.read_page(html, base, form, is_main, options.fit_markdown, options.lists)
    )
    return read


def _document(
    source: Source, title: str, content: str, options: ReadOptions, metadata: dict[str, Any]
) -> dict[str, Any]:
    return {
        "url": source.url,
        "title": title,
        "content": content,
        "contentType": options.form,
        "metadata": metadata,
    }
