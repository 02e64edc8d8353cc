"""The outline of a page, for a model that has to find selectors: its elements with the attributes that selectors
use, texts cut short, and the first few of elements that repeat.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

OUTLINE_MAX_CHARS: Final = 60_000
DEPTH_MAX: Final = 60
LIKE_SHOWN: Final = 3
TEXT_MAX_CHARS: Final = 80
CLASS_MAX_CHARS: Final = 120
VALUE_MAX_CHARS: Final = 60

_BLANKS: Final = re.compile(r"\s+")
_SILENT: Final = frozenset(
    ["script", "style", "template", "noscript", "svg", "link", "meta", "iframe", "-comment"]
)
_TELLING: Final = frozenset(
    [
        "href",
        "src",
        "alt",
        "title",
        "itemprop",
        "itemtype",
        "name",
        "type",
        "role",
        "rel",
        "datetime",
        "content",
        "value",
        "property",
        "aria-label",
    ]
)


def outline_of(tree: LexborHTMLParser) -> str:
    """HTML of the body, at most `OUTLINE_MAX_CHARS`."""
    parts: list[str] = []
    if tree.body is not None:
        _write(tree.body, 0, parts, OUTLINE_MAX_CHARS)
    return "".join(parts)[:OUTLINE_MAX_CHARS]


def _write(node: LexborNode, depth: int, parts: list[str], remaining: int) -> int:
    """Writes an element; the number of characters that are left."""
    head = f"<{node.tag}{_attributes(node)}>"
    tail = f"</{node.tag}>\n"
    parts.append(head)
    remaining -= len(head) + len(tail)
    like, count = "", 0
    for child in node.iter(include_text=True):
        tag = child.tag or ""
        if remaining <= 0:
            break
        if tag == "-text":
            text = _shortened(_BLANKS.sub(" ", child.text_content or "").strip(), TEXT_MAX_CHARS)
            parts.append(escape(text, quote=False))
            remaining -= len(text)
        elif tag not in _SILENT and depth < DEPTH_MAX:
            kind = f"{tag} {child.attributes.get('class')}"
            count = count + 1 if kind == like else 1
            like = kind
            if count <= LIKE_SHOWN:
                remaining = _write(child, depth + 1, parts, remaining)
            elif count == LIKE_SHOWN + 1:
                parts.append("<!-- and more like this -->\n")
    parts.append(tail)
    return remaining


def _attributes(node: LexborNode) -> str:
    written = ""
    for name, value in node.attributes.items():
        if name in {"class", "id"}:
            written += f' {name}="{escape(_shortened(value or "", CLASS_MAX_CHARS))}"'
        elif name in _TELLING or name.startswith("data-"):
            written += f' {name}="{escape(_shortened(value or "", VALUE_MAX_CHARS))}"'
    return written[:1000]


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[:chars] + "..."
