"""A page without the elements that its caller leaves out, before it is read."""

from __future__ import annotations

from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from fairlead import _core
from fairlead.scrape.page.charset import decode
from fairlead.scrape.page.extract import ReadOptions, Source, extract
from fairlead.scrape.page.shell import is_shell

_HTML: Final = ("text/html", "application/xhtml+xml", "")
_DATA_IMAGES: Final = 'img[src^="data:" i]'


class BadSelector(ValueError):
    """A selector that cannot be read; the text is a sentence."""


def extract_selected(source: Source, options: ReadOptions) -> tuple[dict[str, Any], list[str]]:
    """`extract` of the elements that the options choose. The page's links are those of the whole page, and `rawHtml` is
    the page as it came. With `looks_for_shell` a shell has `isShell`. `BadSelector`.
    """
    kind = source.content_type.partition(";")[0].strip().lower()
    if kind not in _HTML:
        return extract(source, options)
    document, links = _selected(source, options) if options.edits else extract(source, options)
    if options.looks_for_shell and is_shell(source.body, source.content_type):
        document["isShell"] = True
    return document, links


def _selected(source: Source, options: ReadOptions) -> tuple[dict[str, Any], list[str]]:
    text, _ = decode(source.body, source.content_type)
    edited = Source(
        source.url,
        _edited(text, options).encode("utf-8", "replace"),
        "text/html; charset=utf-8",
        source.redirects,
    )
    document, links = extract(edited, options)
    if options.include_tags or options.exclude_tags:
        links = extract(source, ReadOptions(form="text"))[1]
    if "rawHtml" in options.forms:
        document["formats"]["rawHtml"] = text
    return document, links


def _edited(text: str, options: ReadOptions) -> str:
    parser = LexborHTMLParser(_core.flattened(text))
    removed = [*options.exclude_tags, *([_DATA_IMAGES] if options.remove_base64_images else [])]
    for selector in removed:
        for node in _found(parser, selector):
            node.decompose()
    body = parser.body
    if not options.include_tags or body is None:
        return parser.html or ""
    _mark(parser, options.include_tags)
    # An element within another one that is chosen comes with it.
    outermost = f"[{_MARK}]:not([{_MARK}] *)"
    parts = [_without_mark(node) for node in _found(parser, outermost)]
    head = parser.head
    language = (parser.root.attributes.get("lang") or "") if parser.root is not None else ""
    return (
        f'<!doctype html><html lang="{_attribute(language)}">{head.html if head is not None else ""}'
        f"<body>{''.join(parts)}</body></html>"
    )


_MARK: Final = "data-fairlead-chosen"


def _mark(parser: LexborHTMLParser, selectors: list[str]) -> None:
    for selector in selectors:
        for node in _found(parser, selector):
            node.attrs[_MARK] = ""


def _without_mark(node: Any) -> str:
    return (node.html or "").replace(f' {_MARK}=""', "")


def _attribute(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;")


def _found(parser: LexborHTMLParser, selector: str) -> list[Any]:
    try:
        return list(parser.css(selector))
    except SelectolaxError:
        raise BadSelector(f"{selector[:80]!r} is not a supported CSS selector.") from None
