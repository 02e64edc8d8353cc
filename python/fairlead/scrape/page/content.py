"""The part of a page that is its main content: what the author marked as such, else the element
under which most of the running text stands; without navigation, sharing, related links and the like.
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.scrape.page.tree import TEXT, Node

_CHROME_TAGS: Final = frozenset(["nav", "footer", "aside", "form", "menu"])
_CHROME_ROLES: Final = frozenset(
    [
        "navigation",
        "banner",
        "contentinfo",
        "complementary",
        "search",
        "menu",
        "menubar",
        "dialog",
        "alert",
    ]
)
_CHROME_NAME = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|side-?bar|foot(?:er)?|bread-?crumbs?|share|sharing|social|comments?"
    r"|related|recommend(?:ed|ations)?|promo(?:tion)?s?|sponsor(?:ed)?|ad(?:s|vert(?:isement)?)?|banner|cookies?"
    r"|consent|newsletter|subscribe|signup|pag(?:er|ination)|popup|modal|toolbar|widget|tags?|skip|masthead"
    r"|copyright|legal|disqus|outbrain|taboola|login|more-stories|author-?(?:box|bio))(?:$|[\s_-])",
    re.IGNORECASE,
)
_CONTENT_NAME = re.compile(
    r"(?:^|[\s_-])(?:article|post|entry|content|body|main|story|text|document|markdown)(?:$|[\s_-])",
    re.IGNORECASE,
)
_TEXT_TAGS: Final = frozenset(["p", "pre", "blockquote", "dd", "td", "li"])
_NEVER_CHROME: Final = frozenset(
    [
        "body",
        "main",
        "article",
        "h1",
        "h2",
        "p",
        "pre",
        "code",
        "table",
        "span",
        "a",
        "td",
        "tr",
        "tbody",
        "#text",
    ]
)
_HEADINGS: Final = frozenset(["h1", "h2"])


def main_content(body: Node) -> Node:
    """The element that holds what the page is about. The tree is changed."""
    root = _declared(body) or _scored(body) or body
    _strip(root, is_whole=root is body)
    return root


def _declared(body: Node) -> Node | None:
    marked: list[list[Node]] = [[], [], []]
    for node in body.walk():
        if node.tag == TEXT:
            continue
        if node.attributes.get("itemprop") == "articleBody":
            marked[0].append(node)
        if node.tag == "article":
            marked[1].append(node)
        elif node.tag == "main" or node.attributes.get("role") == "main":
            marked[2].append(node)
    for found in marked:
        if not found:
            continue
        best = max(found, key=lambda node: node.size)
        # Many small articles are the teasers of a list: the list is the content.
        if len(found) > 2 and best.size * 2 < sum(node.size for node in found):
            continue
        if best.size >= 200 or best.size * 3 >= body.size:
            return best
    return None


def _scored(body: Node) -> Node | None:
    scores: dict[Node, float] = {}
    for block in body.walk():
        if block.tag not in _TEXT_TAGS or block.size < 25 or _in_chrome(block):
            continue
        score = (1.0 + block.size / 60.0) * (1.0 - min(block.linked / block.size, 1.0))
        parent, share = block.parent, 1.0
        for _ in range(4):
            if parent is None:
                break
            if parent not in scores:
                scores[parent] = 10.0 if _CONTENT_NAME.search(parent.names) else 0.0
            scores[parent] += score * share
            parent, share = parent.parent, share * 0.6
    if not scores:
        return None
    best = max(scores, key=lambda node: scores[node])
    # Text that goes on beside it belongs to it: then the parent is the content.
    while best.parent is not None and scores.get(best.parent, 0.0) > scores[best] * 0.75:
        best = best.parent
    return best


def _strip(root: Node, *, is_whole: bool) -> None:
    waiting = list(root.children)
    while waiting:
        node = waiting.pop()
        if node.tag == TEXT:
            continue
        if _is_chrome(node, is_whole=is_whole) or _is_link_list(node):
            node.drop()
        else:
            waiting.extend(node.children)


def _is_chrome(node: Node, *, is_whole: bool) -> bool:
    tag = node.tag
    if tag in _CHROME_TAGS:
        return not (tag in {"aside", "form"} and node.running > 600)
    if tag == "header":
        return is_whole and next(node.find(_HEADINGS), None) is None
    if tag in _NEVER_CHROME or not node.attributes:
        return False
    role = node.attributes.get("role")
    if role and role in _CHROME_ROLES:
        return True
    names = node.names
    return bool(names and _CHROME_NAME.search(names) and node.running <= 600)


def _is_link_list(node: Node) -> bool:
    """A block of next to nothing but links, too many of them for a sentence."""
    return (
        node.tag in {"ul", "ol", "div", "section"}
        and node.links >= 4
        and (node.size == 0 or node.linked / node.size > 0.8)
    )


def _in_chrome(node: Node) -> bool:
    parent = node.parent
    for _ in range(12):
        if parent is None or parent.tag == "body":
            return False
        if parent.tag in _CHROME_TAGS or parent.attributes.get("role") in _CHROME_ROLES:
            return True
        names = parent.names
        if names and _CHROME_NAME.search(names) and not _CONTENT_NAME.search(names):
            return True
        parent = parent.parent
    return False


def prune(root: Node) -> None:
    """`fitMarkdown`: takes out blocks that say little, by what share of them is links and how many
    words they have. Headings, tables and code stay.
    """
    kept: Final = frozenset(["table", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "figure"])
    inner = kept | frozenset(["td", "th", "tr", "tbody", "thead", "a", "span", "code", TEXT])
    waiting = list(root.children)
    while waiting:
        node = waiting.pop()
        if node.tag in inner:
            continue
        text = node.size - node.linked
        if node.tag in {"div", "section", "ul", "ol", "p", "figure", "dl"} and not any(
            node.find(kept)
        ):
            density = text / node.size if node.size else 0.0
            words = len(node.line().split()) if node.size < 40 else 9
            if density < 0.48 or words < 2:
                node.drop()
                continue
        waiting.extend(node.children)
