"""A word processor's document as HTML: headings, paragraphs, lists, tables, links, footnotes.

HTML, because what turns that into markdown is there already, and knows what has to be escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final
from xml.etree import ElementTree as ET

from fairlead.scrape.document.archive import Archive, number_of

MAIN: Final = "word/document.xml"
DEPTH_MAX: Final = 8

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_BREAKS: Final = {f"{_W}br": "<br>", f"{_W}cr": "<br>", f"{_W}tab": " ", f"{_W}noBreakHyphen": "-"}


def html_of(archive: Archive) -> str:
    """The document's body and its footnotes. `Unreadable`."""
    return _Writer(archive).html()


class _Writer:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._targets = archive.targets(MAIN)
        self._headings, self._numbered = _styles(archive)
        self._bullets = _bullets(archive)
        self._notes: list[str] = []

    def html(self) -> str:
        tree = self._archive.tree(MAIN)
        body = tree.find(f"{_W}body")
        out = self._blocks(body if body is not None else tree, 0)
        notes = self._footnotes()
        if notes:
            out += "<h2>Notes</h2><ol>" + "".join(f"<li>{note}</li>" for note in notes) + "</ol>"
        return out

    def _blocks(self, parent: ET.Element, depth: int) -> str:
        """HTML of the paragraphs and tables below an element. Items that follow one another are one list."""
        out: list[str] = []
        levels: list[str] = []

        def close_to(level: int) -> None:
            while len(levels) > level:
                out.append(f"</li></{levels.pop()}>")

        for each in parent:
            item = self._item(each) if each.tag == f"{_W}p" else None
            if item is None:
                close_to(0)
                out.append(self._block(each, depth))
                continue
            level, tag = item
            if len(levels) > level and levels[level] != tag:
                close_to(level)
            elif len(levels) > level:
                close_to(level + 1)
                out.append("</li>")
            while len(levels) <= level:
                levels.append(tag)
                out.append(f"<{tag}>" + ("<li>" if len(levels) <= level else ""))
            out.append(f"<li>{self._inline(each)}")
        close_to(0)
        return "".join(out)

    def _block(self, each: ET.Element, depth: int) -> str:
        if each.tag == f"{_W}p":
            heading = self._headings.get(_value(each, "pPr/pStyle"))
            tag = f"h{heading}" if heading else "p"
            text = self._inline(each)
            return f"<{tag}>{text}</{tag}>" if text.strip() else ""
        if each.tag == f"{_W}tbl":
            return self._table(each, depth)
        if each.tag in {_FALLBACK, f"{_W}sectPr"}:
            return ""
        # Content controls, custom XML, insertions: what they hold counts.
        return self._blocks(each, depth) if len(each) else ""

    def _table(self, table: ET.Element, depth: int) -> str:
        if depth >= DEPTH_MAX:
            return ""
        rows = []
        for row in _within(table, f"{_W}tr"):
            cells = (self._blocks(cell, depth + 1) for cell in _within(row, f"{_W}tc"))
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        return "<table>" + "".join(rows) + "</table>"

    def _item(self, paragraph: ET.Element) -> tuple[int, str] | None:
        style = _value(paragraph, "pPr/pStyle")
        number, level = _numbering(paragraph)
        if not number:
            number, level = self._numbered.get(style, ("", ""))
        if number in {"", "0"} or style in self._headings:
            return None
        depth = min(number_of(level) or 0, DEPTH_MAX)
        return depth, "ul" if (number, str(depth)) in self._bullets else "ol"

    def _inline(self, parent: ET.Element) -> str:
        out: list[str] = []
        for each in parent:
            if each.tag == f"{_W}r":
                out.append(self._run(each))
            elif each.tag == f"{_W}hyperlink":
                target = self._targets.get(each.get(f"{_R}id", ""), "")
                text = self._inline(each)
                is_link = target.startswith(("http://", "https://", "mailto:")) and text
                out.append(f'<a href="{escape(target)}">{text}</a>' if is_link else text)
            elif each.tag not in {f"{_W}pPr", f"{_W}del", f"{_W}moveFrom", _FALLBACK}:
                out.append(self._inline(each))
        return "".join(out)

    def _run(self, run: ET.Element) -> str:
        text = "".join(self._piece(each) for each in run)
        if not text.strip():
            return text
        for name, tag in (("b", "strong"), ("i", "em")):
            mark = run.find(f"{_W}rPr/{_W}{name}")
            if mark is not None and mark.get(f"{_W}val") not in {"0", "false"}:
                text = f"<{tag}>{text}</{tag}>"
        return text

    def _piece(self, each: ET.Element) -> str:
        if each.tag == f"{_W}t":
            return escape(each.text or "")
        if each.tag == f"{_W}footnoteReference":
            self._notes.append(each.get(f"{_W}id", ""))
            return f" [{len(self._notes)}]"
        if each.tag in _BREAKS:
            return _BREAKS[each.tag]
        # Text boxes are drawings that hold paragraphs.
        return " ".join(self._inline(p) for p in _within(each, f"{_W}p"))

    def _footnotes(self) -> list[str]:
        if not self._notes or "word/footnotes.xml" not in self._archive.names:
            return []
        tree = self._archive.tree("word/footnotes.xml")
        notes = {
            note.get(f"{_W}id", ""): " ".join(self._inline(p) for p in note.iter(f"{_W}p"))
            for note in tree.iter(f"{_W}footnote")
        }
        return [notes.get(number, "") for number in list(self._notes)]


def _value(element: ET.Element, path: str) -> str:
    found = element.find("/".join(f"{_W}{name}" for name in path.split("/")))
    return found.get(f"{_W}val", "") if found is not None else ""


def _within(parent: ET.Element, tag: str) -> Iterator[ET.Element]:
    """The outermost elements of a kind below another."""
    for each in parent:
        if each.tag == tag:
            yield each
        elif each.tag != _FALLBACK:
            yield from _within(each, tag)


def _numbering(element: ET.Element) -> tuple[str, str]:
    return _value(element, "pPr/numPr/numId"), _value(element, "pPr/numPr/ilvl")


def _styles(archive: Archive) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """Levels of headings, and numbering and level of lists, by the ids of styles (which are in the author's
    language).
    """
    headings: dict[str, int] = {}
    numbered: dict[str, tuple[str, str]] = {}
    if "word/styles.xml" not in archive.names:
        return headings, numbered
    for style in archive.tree("word/styles.xml").iter(f"{_W}style"):
        style_id, name = style.get(f"{_W}styleId", ""), _value(style, "name").lower()
        if name == "title":
            headings[style_id] = 1
        elif name.startswith("heading ") and name[8:] in set("123456789"):
            headings[style_id] = min(int(name[8:]), 6)
        elif (numbering := _numbering(style))[0]:
            numbered[style_id] = numbering
    return headings, numbered


def _bullets(archive: Archive) -> set[tuple[str, str]]:
    """The numberings and levels that have bullets."""
    if "word/numbering.xml" not in archive.names:
        return set()
    tree = archive.tree("word/numbering.xml")
    drawn = {
        (kind.get(f"{_W}abstractNumId", ""), level.get(f"{_W}ilvl", ""))
        for kind in tree.iter(f"{_W}abstractNum")
        for level in kind.iter(f"{_W}lvl")
        if _value(level, "numFmt") == "bullet"
    }
    return {
        (number.get(f"{_W}numId", ""), level)
        for number in tree.iter(f"{_W}num")
        for kind, level in drawn
        if _value(number, "abstractNumId") == kind
    }
