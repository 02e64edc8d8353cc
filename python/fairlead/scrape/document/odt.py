"""A text of OpenDocument as HTML: headings, paragraphs, lists, tables, links, notes."""

from __future__ import annotations

from html import escape
from typing import Final
from xml.etree import ElementTree as ET

from fairlead.scrape.document.archive import Archive, number_of

CONTENT: Final = "content.xml"
MIME_TYPE: Final = "application/vnd.oasis.opendocument.text"
DEPTH_MAX: Final = 8
REPEATED_MAX: Final = 100

_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE: Final = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_FO: Final = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"
# Deleted text, and lists of what the document has.
_SILENT: Final = frozenset(
    [f"{_TEXT}tracked-changes", f"{_TEXT}sequence-decls", f"{_OFFICE}annotation"]
)


def html_of(archive: Archive) -> str:
    """The document's text and its notes. `Unreadable`."""
    return _Writer(archive.tree(CONTENT)).html()


class _Writer:
    def __init__(self, tree: ET.Element) -> None:
        self._tree = tree
        self._notes: list[str] = []
        self._marks = {
            style.get(f"{_STYLE}name", ""): marks
            for style in tree.iter(f"{_STYLE}style")
            if (marks := _marks(style))
        }
        self._ordered = {
            style.get(f"{_STYLE}name", "")
            for style in tree.iter(f"{_TEXT}list-style")
            if style.find(f"{_TEXT}list-level-style-number") is not None
        }

    def html(self) -> str:
        text = self._tree.find(f"{_OFFICE}body/{_OFFICE}text")
        out = self._blocks(text, 0) if text is not None else ""
        if self._notes:
            out += f"<h2>Notes</h2><ol>{''.join(f'<li>{note}</li>' for note in self._notes)}</ol>"
        return out

    def _blocks(self, parent: ET.Element, depth: int) -> str:
        return "".join(self._block(each, depth) for each in parent)

    def _block(self, each: ET.Element, depth: int) -> str:
        if each.tag in _SILENT or depth > DEPTH_MAX:
            return ""
        if each.tag == f"{_TEXT}h":
            level = min(max(number_of(each.get(f"{_TEXT}outline-level", "")) or 1, 1), 6)
            return f"<h{level}>{self._inline(each)}</h{level}>"
        if each.tag == f"{_TEXT}p":
            return f"<p>{self._inline(each)}</p>"
        if each.tag == f"{_TEXT}list":
            tag = "ol" if each.get(f"{_TEXT}style-name") in self._ordered else "ul"
            items = (self._blocks(item, depth + 1) for item in each)
            return f"<{tag}>{''.join(f'<li>{item}</li>' for item in items)}</{tag}>"
        if each.tag == f"{_TABLE}table":
            return self._table(each, depth)
        return self._blocks(each, depth + 1)

    def _table(self, table: ET.Element, depth: int) -> str:
        rows = []
        for row in table.iter(f"{_TABLE}table-row"):
            cells = []
            for cell in row:
                if cell.tag not in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"}:
                    continue
                repeated = number_of(cell.get(f"{_TABLE}number-columns-repeated", "")) or 1
                text = self._blocks(cell, depth + 1)
                # A repeated cell without text fills the row to its end.
                cells += [text] * (min(repeated, REPEATED_MAX) if text else 1)
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        return f"<table>{''.join(rows)}</table>"

    def _inline(self, parent: ET.Element) -> str:
        out = [escape(parent.text or "")]
        for each in parent:
            out += [self._piece(each), escape(each.tail or "")]
        return "".join(out)

    def _piece(self, each: ET.Element) -> str:
        if each.tag == f"{_TEXT}note":
            body = each.find(f"{_TEXT}note-body")
            self._notes.append(" ".join(self._inline(p) for p in body) if body is not None else "")
            return f" [{len(self._notes)}]"
        if each.tag in _SILENT:
            return ""
        if each.tag in {f"{_TEXT}s", f"{_TEXT}tab"}:
            return " "
        if each.tag == f"{_TEXT}line-break":
            return "<br>"
        text = self._inline(each)
        target = each.get(_LINK, "") if each.tag == f"{_TEXT}a" else ""
        if target.startswith(("http://", "https://", "mailto:")) and text:
            return f'<a href="{escape(target)}">{text}</a>'
        for tag in self._marks.get(each.get(f"{_TEXT}style-name", ""), []) if text.strip() else []:
            text = f"<{tag}>{text}</{tag}>"
        return text


def _marks(style: ET.Element) -> list[str]:
    properties = style.find(f"{_STYLE}text-properties")
    if properties is None or style.get(f"{_STYLE}family") != "text":
        return []
    is_bold = properties.get(f"{_FO}font-weight") == "bold"
    is_italic = properties.get(f"{_FO}font-style") == "italic"
    return ["strong"] * is_bold + ["em"] * is_italic
