"""HTML to markdown: headings, paragraphs, lists, tables, code, quotes, links, images.

The tree is bounded in depth, so recursion is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from fairlead.scrape.page.tree import TEXT, Node

_BLOCKS: Final = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "menu",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "ul",
    ]
)
_BLANKS = re.compile(r"[ \t\r\n\f\u00a0]+")
_DOUBLE = re.compile(r" {2,}")
_GAPS = re.compile(r"\n{3,}")
_SPECIAL = re.compile(r"([\\`*_\[\]<])")
_LINE_START = re.compile(r"^(#{1,6}\s|[-+]\s|>\s?|\d+[.)]\s)")
_INVISIBLE = re.compile(
    "[\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff\u00ad\U000e0000-\U000e007f]"
)
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:lang(?:uage)?|highlight(?:-source)?|brush:?)[-_ ]([A-Za-z0-9+#.-]{1,20})"
)


@dataclass(frozen=True, slots=True)
class Style:
    """`links` and `images` say whether targets are written."""

    base: str
    links: bool = True
    images: bool = True


def markdown_of(root: Node, style: Style) -> str:
    """The element's content as markdown, ending without a line feed."""
    text = "\n\n".join(block for block in _blocks(root, style) if block.strip())
    return _INVISIBLE.sub("", _GAPS.sub("\n\n", text)).strip()


_BARE: Final = Style("", links=False, images=False)


def plain_of(root: Node) -> str:
    """The element's text, a line for each block."""
    lines = [block.strip() for block in _blocks(root, _BARE, plain=True) if block.strip()]
    return _INVISIBLE.sub("", "\n".join(lines)).strip()


def _blocks(node: Node, style: Style, *, plain: bool = False) -> list[str]:
    out: list[str] = []
    inline: list[str] = []

    def flush() -> None:
        text = _tidy("".join(inline))
        inline.clear()
        if text:
            out.append(text if plain else _LINE_START.sub(r"\\\1", text))

    for child in node.children:
        tag = child.tag
        if tag in _BLOCKS or (tag not in _INLINE and _has_block(child)):
            flush()
            out += _block(child, style, plain=plain)
        else:
            inline.append(_inline(child, style, plain=plain))
    flush()
    return out


_INLINE: Final = frozenset(
    [
        "#text",
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "br",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "i",
        "img",
        "ins",
        "kbd",
        "label",
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
        "u",
        "var",
        "wbr",
        "picture",
        "source",
    ]
)


def _has_block(node: Node) -> bool:
    return any(child.tag in _BLOCKS for child in node.children)


def _block(node: Node, style: Style, *, plain: bool) -> list[str]:
    tag = node.tag or ""
    if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
        text = _tidy(_inlines(node, style, plain=plain)).replace("\n", " ")
        return [text if plain else f"{'#' * int(tag[1])} {text}"] if text else []
    if tag == "hr":
        return [] if plain else ["---"]
    if tag == "pre":
        code = _code_text(node)
        if not code.strip():
            return []
        if plain:
            return [code]
        fence = "```"
        while fence in code:
            fence += "`"
        return [f"{fence}{language_of(node)}\n{code}\n{fence}"]
    if tag in {"ul", "ol", "menu"}:
        items = _items(node, style, plain=plain)
        return ["\n".join(items)] if items else []
    if tag == "table":
        return _table(node, style, plain=plain)
    inner = _blocks(node, style, plain=plain)
    if tag == "blockquote" and not plain:
        text = "\n\n".join(inner).strip()
        return ["\n".join(f"> {line}".rstrip() for line in text.split("\n"))] if text else []
    if tag == "dd" and not plain and inner:
        return [f": {inner[0]}", *inner[1:]]
    return inner


def _items(node: Node, style: Style, *, plain: bool) -> list[str]:
    lines: list[str] = []
    number = 1
    for child in node.children:
        if child.tag in {"li", "ul", "ol"}:
            parts = (
                _blocks(child, style, plain=plain)
                if child.tag == "li"
                else _block(child, style, plain=plain)
            )
            parts = [part for part in parts if part.strip()]
            if parts and plain:
                lines += parts
            elif parts:
                mark = f"{number}. " if node.tag == "ol" else "- "
                number += 1
                indent = " " * len(mark)
                text = "\n".join(parts)
                lines.append(mark + text.replace("\n", "\n" + indent))
    return lines


_LAYOUT: Final = frozenset(["ul", "ol", "table", "pre", "h1", "h2", "h3", "section", "article"])


def _table(node: Node, style: Style, *, plain: bool) -> list[str]:
    rows = rows_of(node)
    if not rows:
        return []
    # A cell that holds blocks makes it a layout, not data.
    if any(next(cell.find(_LAYOUT), None) for row in rows for cell in row):
        found: list[str] = []
        for row in rows:
            for cell in row:
                found += _blocks(cell, style, plain=plain)
        return found
    texts = [
        [_tidy(_inlines(cell, style, plain=plain)).replace("\n", " ") for cell in row]
        for row in rows
    ]
    if plain:
        return ["\t".join(row) for row in texts]
    width = max(len(row) for row in texts)
    texts = [
        [cell.replace("|", "\\|") for cell in row] + [""] * (width - len(row)) for row in texts
    ]
    head, *body = texts
    return ["\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * width, *body])]


def rows_of(table: Node) -> list[list[Node]]:
    """The cells of a table's own rows."""
    rows: list[list[Node]] = []
    for part in table.children:
        groups = part.children if part.tag in {"thead", "tbody", "tfoot"} else [part]
        for group in groups:
            if group.tag == "tr":
                cells = [cell for cell in group.children if cell.tag in {"td", "th"}]
                if cells:
                    rows.append(cells)
    return rows


def _inlines(node: Node, style: Style, *, plain: bool) -> str:
    return "".join(_inline(child, style, plain=plain) for child in node.children)


def _inline(node: Node, style: Style, *, plain: bool) -> str:
    tag = node.tag
    if tag == TEXT:
        text = node.text
        return text if plain else _SPECIAL.sub(r"\\\1", text)
    if tag in {"source", "wbr"}:
        return ""
    if tag == "br":
        return "\n"
    if tag == "img":
        return "" if plain or not style.images else _image(node, style)
    if tag in {"code", "kbd", "samp"}:
        code = _BLANKS.sub(" ", node.raw_text()).strip()
        if plain or not code:
            return code
        ticks = "``" if "`" in code else "`"
        return f"{ticks}{code}{ticks}"
    inner = _inlines(node, style, plain=plain)
    if plain:
        return f" {inner} " if tag in _BLOCKS else inner
    if tag in _BLOCKS:
        return f" {inner} "
    if tag in {"strong", "b"}:
        return _wrapped(inner, "**")
    if tag in {"em", "i"}:
        return _wrapped(inner, "*")
    if tag in {"del", "s"}:
        return _wrapped(inner, "~~")
    if tag == "a":
        return _link(node, inner, style)
    return inner


def _wrapped(inner: str, mark: str) -> str:
    core = inner.strip()
    if not core or "\n" in core:
        return inner
    lead = inner[: len(inner) - len(inner.lstrip())]
    tail = inner[len(inner.rstrip()) :]
    return f"{lead}{mark}{core}{mark}{tail}"


def _link(node: Node, inner: str, style: Style) -> str:
    href = (node.attributes.get("href") or "").strip()
    core = inner.strip()
    if not style.links or not core or not href or href.startswith("#"):
        return inner
    target = _joined(style.base, href)
    if target is None or "\n" in core:
        return inner
    lead = inner[: len(inner) - len(inner.lstrip())]
    tail = inner[len(inner.rstrip()) :]
    return f"{lead}[{core}]({target}){tail}"


def _image(node: Node, style: Style) -> str:
    target = _joined(style.base, (node.attributes.get("src") or "").strip())
    if target is None:
        return ""
    alt = _SPECIAL.sub(r"\\\1", _BLANKS.sub(" ", node.attributes.get("alt") or "").strip())
    return f"![{alt}]({target})"


def _joined(base: str, href: str) -> str | None:
    try:
        target = urljoin(base, href)
    except ValueError:
        return None
    if not target.startswith(("http://", "https://", "mailto:")):
        return None
    return target.replace(" ", "%20").replace("(", "%28").replace(")", "%29")


def _code_text(node: Node) -> str:
    text = node.raw_text().replace("\r\n", "\n")
    return text.removeprefix("\n").rstrip()


def language_of(pre: Node) -> str:
    """The language that a code block's classes name, or nothing."""
    for node in (next(pre.find(frozenset(["code"])), None), pre):
        if node is None:
            continue
        match = _LANGUAGE.search(node.attributes.get("class") or "")
        if match:
            return match[1].lower()
        if said := node.attributes.get("data-lang"):
            return re.sub(r"[^a-z0-9+#.-]", "", said.lower())[:20]
    return ""


def _tidy(text: str) -> str:
    lines = [_DOUBLE.sub(" ", line).strip() for line in text.split("\n")]
    return "\n".join(lines).strip()
