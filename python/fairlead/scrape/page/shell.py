"""Whether a page is a shell: it has hardly a word, and its scripts would make the rest in a browser."""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from fairlead import _core
from fairlead.scrape.page.charset import decode

WORDS_MAX: Final = 40
"""Words of a shell at most, such as a title, a menu and `Loading...`."""
FEW_WORDS: Final = 10
PENDING_WORDS: Final = re.compile(
    r"\bloading\b|\bplease wait\b|\benable (?:java)?scripts?\b|\bjavascript\b", re.IGNORECASE
)
_UNSEEN: Final = "script, style, noscript, template, svg, head, title"
_ROOTS: Final = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #svelte, #q-app, app-root, [data-reactroot], [ng-app], [ng-version], "
    "[data-server-rendered], div[id$='-root'], div[id$='-app']"
)
_DATA_SCRIPTS: Final = frozenset(
    ["application/json", "application/ld+json", "importmap", "speculationrules", "text/template"]
)


def is_shell(body: bytes, content_type: str) -> bool:
    """Whether a browser would show more than the given HTML has."""
    text, _ = decode(body, content_type)
    parser = LexborHTMLParser(_core.flattened(text))
    if not any(_runs(script.attributes.get("type")) for script in parser.css("script")):
        return False
    has_empty_root = any(not node.text(deep=True).strip() for node in parser.css(_ROOTS))
    unscripted = " ".join(node.text(deep=True) for node in parser.css("noscript"))
    for node in parser.css(_UNSEEN):
        node.decompose()
    shown = parser.body.text(deep=True) if parser.body is not None else ""
    words = len(shown.split())
    if words > WORDS_MAX:
        return False
    asks = PENDING_WORDS.search(shown) or PENDING_WORDS.search(unscripted)
    return has_empty_root or bool(asks) or words <= FEW_WORDS


def _runs(kind: str | None) -> bool:
    """Whether a script of this type runs."""
    return (kind or "").strip().lower() not in _DATA_SCRIPTS
