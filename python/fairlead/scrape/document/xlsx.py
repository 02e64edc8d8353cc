"""A spreadsheet as rows of text, sheet by sheet: values as they were stored, dates as ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from xml.etree import ElementTree as ET

from fairlead.scrape.document.archive import Archive, number_of
from fairlead.scrape.page.extract import Unreadable

BOOK: Final = "xl/workbook.xml"
COLUMNS_MAX: Final = 1000

_S: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_CELL: Final = re.compile(r"([A-Z]{1,3})[0-9]*")
_QUOTED: Final = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
# Ids of the built-in formats of dates, which a file does not declare.
_DATES: Final = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])


def sheets_of(archive: Archive) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """Name and rows of each sheet, in order. Empty rows are left out. `Unreadable`."""
    book = archive.tree(BOOK)
    targets = archive.targets(BOOK)
    strings = _strings(archive)
    dates = _date_styles(archive)
    settings = book.find(f"{_S}workbookPr")
    is_1904 = settings is not None and settings.get("date1904") in {"1", "true"}
    reader = _Reader(strings, dates, datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30))  # noqa: DTZ001 - dates of spreadsheets have no zone
    for sheet in book.iter(f"{_S}sheet"):
        target = targets.get(sheet.get(f"{_R}id", ""), "")
        # Charts and macros are among the sheets too.
        if target in archive.names and target.startswith("xl/worksheets/"):
            yield sheet.get("name", ""), reader.rows(archive, target)


class _Reader:
    def __init__(self, strings: list[str], dates: set[int], epoch: datetime) -> None:
        self._strings = strings
        self._dates = dates
        self._epoch = epoch

    def rows(self, archive: Archive, name: str) -> Iterator[list[str]]:
        for element in archive.elements(name):
            if element.tag != f"{_S}row":
                continue
            row: list[str] = []
            for cell in element.iter(f"{_S}c"):
                text = self._text(cell)
                if not text:
                    continue
                column = _column(cell.get("r", ""), len(row))
                if column >= COLUMNS_MAX:
                    raise Unreadable(f"The document has more than {COLUMNS_MAX} columns.")
                row += [""] * (column + 1 - len(row))
                row[column] = text
            element.clear()
            if row:
                yield row

    def _text(self, cell: ET.Element) -> str:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return "".join(piece.text or "" for piece in cell.iter(f"{_S}t"))
        found = cell.find(f"{_S}v")
        value = (found.text or "") if found is not None else ""
        if kind == "s":
            place = number_of(value)
            return self._strings[place] if place is not None and place < len(self._strings) else ""
        if kind == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(value, value)
        style = cell.get("s", "")
        if kind == "n" and value and number_of(style) in self._dates:
            return self._moment(value)
        return value

    def _moment(self, value: str) -> str:
        try:
            days = float(value)
            moment = self._epoch + timedelta(seconds=round(days * 86_400))
        except (ValueError, OverflowError):
            return value
        if 0 <= days < 1:
            return moment.strftime("%H:%M:%S")
        return moment.date().isoformat() if days == int(days) else moment.isoformat(sep=" ")


def _column(name: str, following: int) -> int:
    """The column of a cell's name, from 0; `following` for a cell without one."""
    match = _CELL.fullmatch(name)
    if match is None:
        return following
    number = 0
    for letter in match[1]:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _strings(archive: Archive) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.names:
        return []
    found: list[str] = []
    for element in archive.elements("xl/sharedStrings.xml"):
        if element.tag == f"{_S}si":
            # Skips `rPh`, which says how a text is pronounced.
            runs = [element, *element.findall(f"{_S}r")]
            found.append("".join(run.findtext(f"{_S}t") or "" for run in runs))
            element.clear()
    return found


def _date_styles(archive: Archive) -> set[int]:
    """Numbers of the cell styles that show a number as a date."""
    if "xl/styles.xml" not in archive.names:
        return set()
    tree = archive.tree("xl/styles.xml")
    own = {
        each.get("numFmtId", "")
        for each in tree.iter(f"{_S}numFmt")
        if re.search(r"[dmyhs]", _QUOTED.sub("", each.get("formatCode", "")).lower())
    }
    styles = tree.find(f"{_S}cellXfs")
    found: set[int] = set()
    for number, style in enumerate(styles if styles is not None else ()):
        name = style.get("numFmtId", "")
        if name in own or number_of(name) in _DATES:
            found.add(number)
    return found
