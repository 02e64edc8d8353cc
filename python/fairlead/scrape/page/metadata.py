"""The metadata of a page from its head, such as title, description and language."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

VALUE_MAX_CHARS = 2000
_BLANKS = re.compile(r"\s+")
_NAMES = {
    "description": "description",
    "og:description": "description",
    "twitter:description": "description",
    "og:title": "ogTitle",
    "og:image": "image",
    "twitter:image": "image",
    "og:type": "type",
    "og:site_name": "siteName",
    "og:url": "ogUrl",
    "author": "author",
    "article:author": "author",
    "article:published_time": "publishedTime",
    "datepublished": "publishedTime",
    "date": "publishedTime",
    "article:modified_time": "modifiedTime",
    "keywords": "keywords",
    "robots": "robots",
    "generator": "generator",
    "og:locale": "locale",
}


def metadata_of(tree: LexborHTMLParser) -> dict[str, str]:
    """Title, description, language, canonical address and others, if present; the first of several values counts."""
    found: dict[str, str] = {}
    title = tree.css_first("head > title") or tree.css_first("title")
    if title is not None and (text := _value(title.text(deep=True))):
        found["title"] = text
    html = tree.css_first("html")
    if html is not None and (language := _value(html.attributes.get("lang"))):
        found["language"] = language
    for node in tree.css("meta[content]"):
        attributes = node.attributes
        name_of_meta = (
            attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        )
        name = _NAMES.get(name_of_meta.lower())
        if name and name not in found and (text := _value(attributes.get("content"))):
            found[name] = text
    link = tree.css_first("link[rel=canonical]")
    if link is not None and (href := _value(link.attributes.get("href"))):
        found["canonical"] = href
    if "title" not in found:
        heading = tree.css_first("h1")
        text = found.get("ogTitle") or (
            _value(heading.text(deep=True)) if heading is not None else ""
        )
        if text:
            found["title"] = text
    return found


def _value(text: str | None) -> str:
    return _BLANKS.sub(" ", text or "").strip()[:VALUE_MAX_CHARS]
