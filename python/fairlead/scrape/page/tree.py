"""A page as a tree of our own: what a reader sees, with the sizes that choices are made by.

Lexbor parses in C and without recursion; the tree is walked once, without recursion, into plain
objects. Whatever looks at it afterwards is linear, and recursion is bounded by `DEPTH_MAX`: what is
nested deeper stands beside its ancestor at that depth. Beyond `NODES_MAX` the rest is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Final
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

DEPTH_MAX: Final = 150
NODES_MAX: Final = 300_000
TEXT: Final = "#text"

_NEVER: Final = frozenset(
    [
        "script",
        "style",
        "noscript",
        "template",
        "iframe",
        "object",
        "embed",
        "canvas",
        "link",
        "meta",
        "svg",
        "input",
        "button",
        "select",
        "textarea",
        "dialog",
        "head",
        "audio",
        "video",
        "math",
        "_comment",
        "-comment",
    ]
)
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE
)
_BLANKS = re.compile(r"\s+")
_NO_ATTRIBUTES: Final[dict[str, str | None]] = {}
# Elements whose attributes nobody asks for; reading them is half of the walk.
_BARE: Final = frozenset(
    [
        "b",
        "i",
        "em",
        "strong",
        "br",
        "tr",
        "tbody",
        "thead",
        "tfoot",
        "li",
        "dt",
        "dd",
        "h3",
        "h4",
        "h5",
        "h6",
        "u",
        "s",
        "del",
    ]
)


class Node:
    """An element, or a run of text (`tag` is `#text`, `text` is set).

    `size` is the number of characters below, `linked` those within links, `running` those of
    paragraphs of some length, `links` the number of links.
    """

    __slots__ = (
        "attributes",
        "children",
        "linked",
        "links",
        "parent",
        "running",
        "size",
        "tag",
        "text",
    )

    def __init__(self, tag: str, parent: Node | None, text: str = "") -> None:
        self.tag = tag
        self.parent = parent
        self.text = text
        self.attributes: dict[str, str | None] = _NO_ATTRIBUTES
        self.children: list[Node] = []
        self.size = len(text)
        self.linked = 0
        self.links = 0
        self.running = 0

    def walk(self) -> Iterator[Node]:
        """The node and everything below it, in the order of the page."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def find(self, tags: frozenset[str]) -> Iterator[Node]:
        """The elements below it that have one of the tags, in the order of the page."""
        return (node for node in self.walk() if node.tag in tags and node is not self)

    def raw_text(self) -> str:
        """All text below, as it stands."""
        return "".join(node.text for node in self.walk() if node.tag == TEXT)

    def line(self) -> str:
        """All text below in one line with single blanks."""
        return _BLANKS.sub(" ", " ".join(n.text for n in self.walk() if n.tag == TEXT)).strip()

    def html(self, base: str) -> str:
        """The node as HTML: elements without scripts and styles, addresses absolute."""
        out: list[str] = []
        # A closing tag waits as a text.
        waiting: list[Node | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                out.append(node)
            elif node.tag == TEXT:
                out.append(escape(node.text, quote=False))
            else:
                out.append(_opening(node, base))
                if node.tag not in _VOID:
                    waiting.append(f"</{node.tag}>")
                    waiting.extend(reversed(node.children))
        return "".join(out)

    def drop(self) -> None:
        """Takes the node out of the tree."""
        if self.parent is not None:
            self.parent.children.remove(self)
            self.parent = None

    @property
    def names(self) -> str:
        """Its class and id."""
        attributes = self.attributes
        return f"{attributes.get('class') or ''} {attributes.get('id') or ''}".strip()


def tree_of(parser: LexborHTMLParser) -> Node | None:
    """The body as a tree; None for a page without one."""
    body = parser.body
    if body is None:
        return None
    root = Node("body", None)
    order: list[Node] = [root]
    # Source and our node for each open element; beyond the depth ours stays the same.
    source, parent, depth = body.child, root, 1
    open_: list[Node] = []
    in_pre = 0
    while source is not None and len(order) < NODES_MAX:
        tag = source.tag or ""
        into: Node | None = None
        if tag == "-text":
            text = source.text_content or ""
            if not in_pre:
                text = _BLANKS.sub(" ", text)
            if text:
                node = Node(TEXT, parent, text)
                parent.children.append(node)
                order.append(node)
        elif tag not in _NEVER:
            attributes = _NO_ATTRIBUTES if tag in _BARE else source.attributes
            if not attributes or not _is_hidden(attributes):
                into = Node(tag, parent)
                into.attributes = attributes
                parent.children.append(into)
                order.append(into)
        child = source.child if into is not None else None
        if child is not None and into is not None:
            open_.append(parent)
            if depth < DEPTH_MAX:
                parent = into
            depth += 1
            in_pre += tag == "pre"
            source = child
            continue
        following = source.next
        while following is None:
            source = source.parent
            if source is None or not open_:
                break
            parent = open_.pop()
            depth -= 1
            in_pre -= source.tag == "pre"
            following = source.next
        source = following if open_ or following is not None else None
    _measure(order)
    return root


_VOID: Final = frozenset(["area", "base", "br", "col", "hr", "img", "source", "track", "wbr"])
_KEPT_ATTRIBUTES: Final = (
    "href",
    "src",
    "alt",
    "title",
    "class",
    "id",
    "colspan",
    "rowspan",
    "lang",
    "datetime",
)


def _opening(node: Node, base: str) -> str:
    parts = [node.tag]
    for name in _KEPT_ATTRIBUTES:
        value = node.attributes.get(name)
        if value is None:
            continue
        if name in {"href", "src"}:
            try:
                value = urljoin(base, value.strip())
            except ValueError:
                continue
            if not value.startswith(("http://", "https://", "mailto:", "#")):
                continue
        parts.append(f'{name}="{escape(value)}"')
    return f"<{' '.join(parts)}>"


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    style = attributes.get("style")
    return bool(style and _HIDDEN_STYLE.search(style))


def _measure(order: list[Node]) -> None:
    for node in reversed(order):
        if node.tag == "a":
            node.linked, node.links = node.size, 1
        elif node.tag == "p" and node.size > 60:
            node.running = node.size - node.linked
        parent = node.parent
        if parent is not None:
            parent.size += node.size
            parent.linked += node.linked
            parent.links += node.links
            parent.running += node.running
