"""The body of a page as text for `_core.read_page`: Lexbor's tree, written out so that it can be read back exactly."""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from fairlead import _core

FRAMES_MAX: Final = 20

# Elements whose text is written without escapes, and which no reader sees. Their text may hold what looks like their
# own end tag, for example in a drawing or in a script that writes scripts.
_SILENT: Final = ["script", "style", "noembed", "noframes"]
_TEX_SCRIPT: Final = 'script[type^="math/tex"]'
_CLOSED: Final = re.compile(
    r"<(script|style|title|textarea|iframe|noscript|template|div|span|p|a|b|i|em|strong|ul|ol|li|td|th|h[1-6])"
    r"((?:\s[^<>]*?)?)/>",
    re.IGNORECASE,
)


def body_of(parser: LexborHTMLParser, source: str) -> str:
    """The page's body or its set of frames. Changes the tree: scripts and styles are taken out.

    Formulas in scripts become `math` elements, and documents within attributes (`srcdoc`) parts of the page.
    """
    if "math/tex" in source:
        for node in parser.css(_TEX_SCRIPT):
            _show_formula(parser, node)
    if "srcdoc" in source:
        for _ in range(FRAMES_MAX):
            # A frame may hold another one.
            frame = parser.css_first("iframe[srcdoc]")
            if frame is None:
                break
            _show_frame(parser, frame)
    parser.strip_tags(_SILENT, recursive=True)
    body = parser.body or parser.css_first("frameset")
    return (body.html if body is not None else None) or ""


def closed_elements(text: str) -> str:
    """XHTML as HTML: `<script/>` is an element with an end there, and only a start tag here."""
    return _CLOSED.sub(r"<\1\2></\1>", text)


def _show_formula(parser: LexborHTMLParser, node: LexborNode) -> None:
    formula = parser.create_node("math")
    text = node.first_child
    formula.attrs["alttext"] = ((text.text_content or "") if text is not None else "").strip()
    if "mode=display" in (node.attributes.get("type") or ""):
        formula.attrs["display"] = "block"
    node.replace_with(formula)


def _show_frame(parser: LexborHTMLParser, node: LexborNode) -> None:
    document = LexborHTMLParser(_core.flattened(node.attributes.get("srcdoc") or ""))
    document.strip_tags(_SILENT, recursive=True)
    part = parser.create_node("div")
    part.inner_html = (document.body.inner_html if document.body is not None else None) or ""
    node.replace_with(part)
