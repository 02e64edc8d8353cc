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
from fairlead.scrape.page.body import body_of, closed_elements
from fairlead.scrape.page.charset import decode
from fairlead.scrape.page.contacts import contacts_of
from fairlead.scrape.page.css import fill_ratio, invalid_selectors, records_of, text_of
from fairlead.scrape.page.feed import MEDIA_TYPES, html_of_feed, is_feed
from fairlead.scrape.page.fence import fenced
from fairlead.scrape.page.links import base_of, links_of
from fairlead.scrape.page.metadata import metadata_of
from fairlead.scrape.page.outline import outline_of
from fairlead.scrape.page.warnings import WALL_MAX_CHARS, Shown, warnings_of

_HTML: Final = frozenset(["text/html", "application/xhtml+xml", ""])
_READ_LISTS: Final = ("tables", "code", "images")
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


def extract(source: Source, options: ReadOptions) -> tuple[dict[str, Any], list[str]]:
    """The answer's document and the page's links. `Unreadable` for what is no text."""
    kind = source.content_type.partition(";")[0].strip().lower()
    if kind not in _HTML and kind not in MEDIA_TYPES and not kind.startswith(_TEXTUAL):
        raise Unreadable(f"The address holds {kind[:80]}, which is not supported.")
    text, charset = decode(source.body, source.content_type)
    metadata: dict[str, Any] = {"contentType": kind, "charset": charset}
    if source.redirects:
        metadata["redirects"] = source.redirects
    feed = html_of_feed(text) if is_feed(text, kind) else None
    if kind not in _HTML and feed is None:
        texts = {form: _text_as(form, text, kind) for form in [options.form, *options.forms]}
        document = _document(source, "", texts[options.form], options, metadata)
        if options.forms:
            document["formats"] = {form: texts[form] for form in options.forms}
        if options.fingerprint:
            document["fingerprint"] = _fingerprint(text)
        return document, []
    markup = closed_elements(text) if kind == "application/xhtml+xml" else (feed or text)
    page = Page(text, markup, source.url, options)
    metadata |= page.metadata
    document = _document(
        source, str(metadata.get("title", "")), page.content_as(options.form), options, metadata
    )
    formats = page.formats()
    if formats:
        document["formats"] = formats
    if options.fingerprint:
        document["fingerprint"] = _fingerprint(page.content_as("text"))
    return document, [link["url"] for link in page.links]


class Page:
    """A page of HTML: its metadata, its links, and its content in the requested forms. `text` is what was received, and
    `markup` the same as HTML.
    """

    def __init__(self, text: str, markup: str, url: str, options: ReadOptions) -> None:
        self._text, self._options = text, options
        parser = LexborHTMLParser(_core.flattened(markup))
        self._base = base_of(parser, url)
        self.metadata: dict[str, Any] = dict(metadata_of(parser))
        has_scripts = parser.css_first("script") is not None
        self._html = body_of(parser, markup)
        self._contents: dict[str, str] = {}
        is_whole = options.form == "html" and not options.only_main_content
        self._read = self._read_as("" if is_whole else options.form)
        if not is_whole:
            self._contents[options.form] = self._read["content"]
        self.links = links_of(self._read["links"], self._base)
        self._contacts = (
            contacts_of(text_of(parser.body) if parser.body else "", self._read["links"])
            if "contacts" in options.lists
            else None
        )
        self._warn(parser, has_scripts=has_scripts)

    def content_as(self, form: str) -> str:
        """The content in a form; `rawHtml` is the page as it was received."""
        if form == "rawHtml" or (form == "html" and not self._options.only_main_content):
            return self._text
        if form not in self._contents:
            self._contents[form] = self._read_as(form)["content"]
        return self._contents[form]

    def formats(self) -> dict[str, Any]:
        """The requested lists and further forms."""
        found: dict[str, Any] = {
            name: self._read[name] for name in _READ_LISTS if name in self._read
        }
        if "links" in self._options.lists:
            found["links"] = self.links
        if self._contacts is not None:
            found["contacts"] = self._contacts
        return found | {form: self.content_as(form) for form in self._options.forms}

    def _read_as(self, form: str) -> dict[str, Any]:
        """Content, links and lists. Lexbor parses by the standard and writes the tree out again, with every element
        closed; that text is read by our own code, which can then be simple and fast.
        """
        options = self._options
        is_main = options.only_main_content or options.fit_markdown
        read: dict[str, Any] = orjson.loads(
            _core.read_page(
                self._html, self._base, form, is_main, options.fit_markdown, options.lists
            )
        )
        return read

    def _warn(self, parser: LexborHTMLParser, *, has_scripts: bool) -> None:
        found: list[str] = []
        if self._read["visible_chars"] <= WALL_MAX_CHARS:
            whole = orjson.loads(_core.read_page(self._html, self._base, "text", False, False, []))
            title = str(self.metadata.get("title", ""))
            shown = Shown(title, whole["content"], self._text, has_scripts)
            found += warnings_of(parser, shown)
        if self._read["is_cut"]:
            self.metadata["truncated"] = True
            self.metadata["truncatedBytes"] = self._read["cut_bytes"]
            found.append("truncated")
        if self._read["has_frames"]:
            found.append("frames_left_out")
        if found:
            self.metadata["warnings"] = found


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
