"""Flattening pages that nest without end.

The parsing rules of HTML look through all open elements at each tag, so a page of a hundred
thousand nested elements costs seconds. Such pages are found by counting and lose the tags that
are nested deeper than any real page.
"""

from __future__ import annotations

import re
from typing import Final

OPEN_MAX: Final = 512
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)[^>]*>")
_VOID: Final = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
        "p",
        "li",
        "td",
        "th",
        "tr",
        "option",
        "dt",
        "dd",
    ]
)


def flattened(html: str) -> str:
    """The text, without tags that would be nested deeper than `OPEN_MAX`."""
    if html.count("<") - 2 * html.count("</") <= OPEN_MAX:
        return html
    open_count = 0

    def keep(match: re.Match[str]) -> str:
        nonlocal open_count
        if match[2].lower() in _VOID or match[0].endswith("/>"):
            return match[0]
        open_count += -1 if match[1] else 1
        if match[1]:
            open_count = max(open_count, 0)
            return match[0] if open_count < OPEN_MAX else ""
        return match[0] if open_count <= OPEN_MAX else ""

    return _TAG.sub(keep, html)
