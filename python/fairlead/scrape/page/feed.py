"""Feeds (RSS, RDF, Atom) as HTML: the feed's title, and each entry with its title, link, date, author and text."""

from __future__ import annotations

import re
from html import escape
from typing import Final
from xml.etree import ElementTree as ET

from fairlead.scrape.page.xml_text import XmlRefused, parsed_xml

ENTRIES_MAX: Final = 1_000

MEDIA_TYPES: Final = frozenset(
    ["application/rss+xml", "application/atom+xml", "application/rdf+xml"]
)
_MAYBE: Final = frozenset(["application/xml", "text/xml"])
_ROOT: Final = re.compile(r"<(?:rss|feed|rdf:RDF)[\s>]", re.IGNORECASE)
_ROOT_WITHIN_CHARS: Final = 2_000
_ATOM: Final = "{http://www.w3.org/2005/Atom}"


def is_feed(text: str, media_type: str) -> bool:
    """Whether a document is a feed: by its media type, or by its root where that says no more than XML."""
    return media_type in MEDIA_TYPES or (
        media_type in _MAYBE and _ROOT.search(text[:_ROOT_WITHIN_CHARS]) is not None
    )


def html_of_feed(text: str) -> str | None:
    """The feed as a page; None for XML that is broken, declares entities, or is no feed."""
    try:
        root = parsed_xml(text.encode("utf-8", "replace"))
    except XmlRefused:
        return None
    if _name(root) not in {"rss", "feed", "RDF"}:
        return None
    channel = next((each for each in root if _name(each) == "channel"), root)
    entries = [each for each in root.iter() if _name(each) in {"item", "entry"}]
    title = _text(channel, "title")
    parts = [
        f"<!doctype html><html><head><title>{escape(title)}</title></head><body><main>",
        f"<h1>{escape(title)}</h1>" if title else "",
        _content(channel, "description", "subtitle"),
        *(_entry(each) for each in entries[:ENTRIES_MAX]),
        "</main></body></html>",
    ]
    return "".join(parts)


def _entry(entry: ET.Element) -> str:
    title, link = _text(entry, "title") or "Untitled", _link(entry)
    heading = f'<a href="{escape(link)}">{escape(title)}</a>' if link else escape(title)
    facts = [
        _text(entry, "published", "pubDate", "date", "updated"),
        _text(entry, "creator") or _author(entry),
    ]
    line = " · ".join(escape(fact) for fact in facts if fact)
    return (
        f"<article><h2>{heading}</h2>"
        + (f"<p>{line}</p>" if line else "")
        + _content(entry, "encoded", "content", "description", "summary")
        + "</article>"
    )


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _child(parent: ET.Element, name: str) -> ET.Element | None:
    return next((each for each in parent if _name(each) == name), None)


def _text(parent: ET.Element, *names: str) -> str:
    """The text of the first child with one of these names that has text, without markup."""
    for name in names:
        child = _child(parent, name)
        text = "" if child is None else re.sub(r"<[^>]*>", "", "".join(child.itertext()))
        if text.strip():
            return " ".join(text.split())
    return ""


def _author(entry: ET.Element) -> str:
    author = _child(entry, "author")
    if author is None:
        return ""
    return _text(author, "name") or " ".join((author.text or "").split())


def _link(entry: ET.Element) -> str:
    for link in entry:
        if _name(link) == "link" and link.get("rel", "alternate") == "alternate":
            return (link.get("href") or link.text or "").strip()
    return ""


def _content(parent: ET.Element, *names: str) -> str:
    """The HTML of the first child with one of these names that has any."""
    for name in names:
        child = _child(parent, name)
        if child is None:
            continue
        if len(child) and child.tag.startswith(_ATOM):
            # The feed contains XHTML as elements.
            html = "".join(ET.tostring(each, "unicode", method="html") for each in child)
            html = re.sub(r"(</?)(?:\w+:)", r"\1", html)
        elif child.get("type") == "text":
            html = f"<p>{escape(child.text or '')}</p>"
        else:
            html = child.text or ""
        if html.strip():
            return f"<div>{html}</div>"
    return ""
