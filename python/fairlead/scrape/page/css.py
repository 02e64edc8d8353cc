"""Records of a page by CSS selectors. A plan says which elements are records and where each field is in a record;
it is `css.schema.CssSchema` as plain data, because the processes that read pages know nothing of requests.
"""

from __future__ import annotations

import re
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from fairlead.net.url import join_url

RECORDS_MAX: Final = 1000
ITEMS_MAX: Final = 200
VALUE_MAX_CHARS: Final = 20_000
RECORDS_MAX_CHARS: Final = 5_000_000

_BLANKS: Final = re.compile(r"\s+")
_NUMBER: Final = re.compile(
    r"(?P<sign>(?<!\w)[-\u2212])?(?P<digits>\d{1,40}(?:[.,]\d{1,40})?)", re.ASCII
)
_GROUPED: Final = re.compile(
    r"([1-9]\d{0,2})([ '\u2019.,])(\d{3})((?:\2\d{3})*)(?:(?!\2)[.,](\d{1,40}))?(?!\d)", re.ASCII
)
_SILENT: Final = frozenset(["script", "style", "template", "noscript"])
_INLINE: Final = frozenset(
    [
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
        "kbd",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
        "wbr",
    ]
)
_ADDRESSES: Final = frozenset(["href", "src", "action", "poster", "cite"])


def invalid_selectors(plan: dict[str, Any]) -> list[str]:
    """Selectors of a plan that cannot be read, as sentences that name the place."""
    empty = LexborHTMLParser("<p>")
    problems: list[str] = []

    def check(selector: str, place: str) -> None:
        try:
            empty.css(selector)
        except SelectolaxError:
            problems.append(f"{place} {selector[:80]!r} is not a supported CSS selector")

    def walk(fields: list[dict[str, Any]], place: str) -> None:
        for number, field in enumerate(fields):
            path = f"{place}fields[{number}]"
            if field["selector"]:
                check(field["selector"], f"{path}.selector")
            walk(field["fields"], f"{path}.")

    check(plan["baseSelector"], "baseSelector")
    walk(plan["fields"], "")
    return problems


def records_of(tree: LexborHTMLParser, base: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The records in the order of the page, as many as `RECORDS_MAX` and `RECORDS_MAX_CHARS` allow."""
    reader = _Reader(base)
    records: list[dict[str, Any]] = []
    for node in tree.css(plan["baseSelector"])[:RECORDS_MAX]:
        if reader.chars > RECORDS_MAX_CHARS:
            break
        records.append(reader.record(node, plan["fields"]))
    return records


def fill_ratio(records: list[dict[str, Any]]) -> float:
    """The share of fields that are filled; 0 where there are no fields."""
    count = sum(len(record) for record in records)
    filled = sum(is_filled(value) for record in records for value in record.values())
    return round(filled / count, 4) if count else 0.0


def is_filled(value: Any) -> bool:
    """Whether a field has something in it."""
    return value is not None and value not in ("", [])


class _Reader:
    """Reads fields and counts characters, because each of a thousand records can hold the whole page's text."""

    def __init__(self, base: str) -> None:
        self.chars = 0
        self._base = base

    def record(self, node: LexborNode, fields: list[dict[str, Any]]) -> dict[str, Any]:
        return {field["name"]: self._value(node, field) for field in fields}

    def _value(self, node: LexborNode, field: dict[str, Any]) -> Any:
        found = _found(node, field["selector"])[:ITEMS_MAX]
        match field["type"]:
            case "list":
                return [text for each in found if (text := self._text(each, field))]
            case "nested_list":
                items = (self.record(each, field["fields"]) for each in found)
                return [item for item in items if any(map(is_filled, item.values()))]
            case _ if not found:
                return None
            case "nested":
                inner = self.record(found[0], field["fields"])
                return inner if any(map(is_filled, inner.values())) else None
            case "number":
                return number_of(self._text(found[0], field) or "")
            case _:
                return self._text(found[0], field)

    def _text(self, node: LexborNode, field: dict[str, Any]) -> str | None:
        name = field["attribute"]
        if name:
            text = (node.attributes.get(name) or "").strip()
            if text and name in _ADDRESSES:
                text = _absolute(text, self._base)
        elif field["type"] == "html":
            text = node.html or ""
        else:
            text = text_of(node)
        text = text[:VALUE_MAX_CHARS]
        self.chars += len(text)
        return text or None


def _found(node: LexborNode, selector: str) -> list[LexborNode]:
    """The matches of a selector below an element, or the element itself if nothing below matches."""
    if not selector:
        return [node]
    found = node.css(selector)
    below = [each for each in found if each != node]
    return below or found


def text_of(node: LexborNode) -> str:
    """The element's text with single blanks, and a blank between blocks."""
    parts: list[str] = []
    _add_text(node, parts)
    return _BLANKS.sub(" ", "".join(parts)).strip()


def _add_text(node: LexborNode, parts: list[str]) -> None:
    for child in node.iter(include_text=True):
        tag = child.tag
        if tag == "-text":
            parts.append(child.text_content or "")
        elif tag not in _SILENT:
            gap = "" if tag in _INLINE else " "
            parts.append(gap)
            _add_text(child, parts)
            parts.append(gap)


def number_of(text: str) -> int | float | None:
    """The first number of a text: `1,234.50 EUR`, `1.234,50` and `1 234` are read as people mean them. `1,234` is
    more than a thousand, `1.234` is little more than one.
    """
    first = _NUMBER.search(text)
    if first is None:
        return None
    grouped = _GROUPED.match(text, first.start("digits"))
    digits = first["digits"].replace(",", ".")
    if grouped is not None and (grouped[2] != "." or grouped[5] or grouped[4].count(".")):
        digits = re.sub(r"\D", "", grouped[1] + grouped[3] + grouped[4])
        digits += f".{grouped[5]}" if grouped[5] else ""
    value = float(digits) * (-1 if first["sign"] in ("-", "\u2212") else 1)
    return int(value) if "." not in digits and abs(value) < 2**53 else value


def _absolute(text: str, base: str) -> str:
    try:
        return join_url(base, text)
    except ValueError:
        return text
