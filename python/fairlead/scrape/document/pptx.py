"""A presentation as HTML: for each slide its title, its texts and lists, its tables and the speaker's notes."""

from __future__ import annotations

from html import escape
from typing import Final
from xml.etree import ElementTree as ET

from fairlead.scrape.document.archive import Archive, number_of

MAIN: Final = "ppt/presentation.xml"
SLIDES_MAX: Final = 2_000
LEVELS_MAX: Final = 8

_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def html_of(archive: Archive) -> tuple[str, int]:
    """The slides in order, and how many there are. `Unreadable`."""
    targets = archive.targets(MAIN)
    slides = [
        name
        for each in archive.tree(MAIN).iter(f"{_P}sldId")
        if (name := targets.get(each.get(f"{_R}id", ""), "")) in archive.names
    ][:SLIDES_MAX]
    parts = [_slide(archive, name, number) for number, name in enumerate(slides, 1)]
    return "".join(parts), len(slides)


def _slide(archive: Archive, name: str, number: int) -> str:
    targets = archive.targets(name)
    title, blocks = "", []
    for shape in archive.tree(name).iter():
        if shape.tag == f"{_A}tbl":
            blocks.append(_table(shape, targets))
        if shape.tag != f"{_P}sp":
            continue
        kind = _placeholder(shape)
        body = shape.find(f"{_P}txBody")
        if body is None or kind in {"sldNum", "dt", "ftr"}:
            continue
        if kind in {"title", "ctrTitle"} and not title:
            title = " ".join(filter(None, (_line(p, targets) for p in body.iter(f"{_A}p"))))
        else:
            blocks.append(_paragraphs(body, targets, is_list=kind in {"body", "obj", ""}))
    notes = _notes(archive, targets)
    return f"<h2>{title or f'Slide {number}'}</h2>{''.join(blocks)}{notes}"


def _placeholder(shape: ET.Element) -> str | None:
    """The kind of a placeholder, "" for one without a kind, None for another shape."""
    found = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return found.get("type", "") if found is not None else None


def _paragraphs(body: ET.Element, targets: dict[str, str], *, is_list: bool) -> str:
    """The texts of a shape. In a placeholder for text each paragraph is an item, at its level."""
    out: list[str] = []
    open_levels = 0
    for paragraph in body.iter(f"{_A}p"):
        line = _line(paragraph, targets)
        if not line:
            continue
        if not is_list:
            out.append(f"<p>{line}</p>")
            continue
        properties = paragraph.find(f"{_A}pPr")
        level = number_of(properties.get("lvl", "")) if properties is not None else None
        wanted = min(level or 0, LEVELS_MAX) + 1
        if open_levels >= wanted:
            out += ["</li></ul>"] * (open_levels - wanted) + ["</li>"]
        else:
            out += ["<ul>"] + ["<li><ul>"] * (wanted - open_levels - 1)
        open_levels = wanted
        out.append(f"<li>{line}")
    return "".join([*out, *["</li></ul>"] * open_levels])


def _line(paragraph: ET.Element, targets: dict[str, str]) -> str:
    out: list[str] = []
    for each in paragraph:
        if each.tag == f"{_A}br":
            out.append("<br>")
        text = escape(each.findtext(f"{_A}t") or "") if each.tag in {f"{_A}r", f"{_A}fld"} else ""
        link = each.find(f"{_A}rPr/{_A}hlinkClick")
        target = targets.get(link.get(f"{_R}id", ""), "") if link is not None else ""
        if text and target.startswith(("http://", "https://", "mailto:")):
            text = f'<a href="{escape(target)}">{text}</a>'
        out.append(text)
    return "".join(out).strip()


def _table(table: ET.Element, targets: dict[str, str]) -> str:
    rows = []
    for row in table.iter(f"{_A}tr"):
        cells = (
            "<br>".join(filter(None, (_line(p, targets) for p in cell.iter(f"{_A}p"))))
            for cell in row.iter(f"{_A}tc")
        )
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _notes(archive: Archive, targets: dict[str, str]) -> str:
    name = next((each for each in targets.values() if "notesSlides/" in each), "")
    if name not in archive.names:
        return ""
    lines = [
        _line(paragraph, {})
        for shape in archive.tree(name).iter(f"{_P}sp")
        if _placeholder(shape) == "body"
        for paragraph in shape.iter(f"{_A}p")
    ]
    text = "".join(f"<p>{line}</p>" for line in lines if line)
    return f"<blockquote>{text}</blockquote>" if text else ""
