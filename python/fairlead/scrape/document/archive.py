"""The archives in which office programs keep their documents: ZIP with XML, read under caps.

A few kilobytes of ZIP may hold gigabytes, and a few lines of a DTD may too. So what comes out of an
archive is counted while it comes, and XML with a DTD, which these formats forbid, is not read at all.
"""

from __future__ import annotations

import io
import lzma
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

from fairlead.scrape.page.extract import Unreadable
from fairlead.scrape.page.xml_text import XmlRefused, refuse_dtd

FILES_MAX: Final = 10_000
FILE_MAX_BYTES: Final = 64 * 1024 * 1024
ARCHIVE_MAX_BYTES: Final = 128 * 1024 * 1024
RELATIONSHIP: Final = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


_PARTS: Final = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "xlsx",
    "ppt/presentation.xml": "pptx",
}
_MIME_TYPES: Final = {
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/epub+zip": "epub",
}


class Archive:
    """The files of an archive. Every method raises `Unreadable` for what is missing, broken or too large."""

    def __init__(self, body: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error):
            raise Unreadable("The document is no whole ZIP archive.") from None
        self.names = frozenset(self._zip.namelist())
        if len(self.names) > FILES_MAX:
            raise Unreadable(f"The document has more than {FILES_MAX} files.")
        self._remaining = ARCHIVE_MAX_BYTES

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        most = min(FILE_MAX_BYTES, self._remaining)
        try:
            with self._zip.open(name) as file:
                body = file.read(most + 1)
        except KeyError:
            raise Unreadable(f"The document lacks its part {name[:100]}.") from None
        except RuntimeError:
            raise Unreadable("The document is encrypted.") from None
        except (
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            EOFError,
            OSError,
            NotImplementedError,
            ValueError,
        ):
            raise Unreadable(f"The document's part {name[:100]} is broken.") from None
        if len(body) > most:
            raise Unreadable(
                f"The document is larger than {FILE_MAX_BYTES} bytes in one part, or than "
                f"{ARCHIVE_MAX_BYTES} in all, when it is unpacked."
            )
        self._remaining -= len(body)
        return body

    def tree(self, name: str) -> ET.Element:
        """A file's XML as a whole."""
        body = self._xml(name)
        try:
            return ET.fromstring(body)  # noqa: S314 - it has no DTD
        except ET.ParseError:
            raise Unreadable(f"The document's part {name[:100]} is no XML.") from None

    def elements(self, name: str) -> Iterator[ET.Element]:
        """A file's elements, each when it ends. The caller clears processed elements."""
        body = self._xml(name)
        try:
            for _, element in ET.iterparse(io.BytesIO(body)):  # noqa: S314 - it has no DTD
                yield element
        except ET.ParseError:
            raise Unreadable(f"The document's part {name[:100]} is no XML.") from None

    def targets(self, name: str) -> dict[str, str]:
        """The targets of the relationships of a file, by their ids: addresses, and names in the archive."""
        folder, _, file = name.rpartition("/")
        table = f"{folder}/_rels/{file}.rels"
        if table not in self.names:
            return {}
        found: dict[str, str] = {}
        for each in self.tree(table).iter(RELATIONSHIP):
            target = each.get("Target", "")
            if each.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            found[each.get("Id", "")] = target
        return found

    def _xml(self, name: str) -> bytes:
        body = self.read(name)
        _refuse_dtd(body, name)
        return body


def number_of(text: str) -> int | None:
    """The number that an attribute or a cell holds; None for anything else, and for one that no document needs."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _refuse_dtd(body: bytes, name: str) -> None:
    try:
        refuse_dtd(body)
    except XmlRefused as reason:
        if str(reason) == "broken":
            raise Unreadable(f"The document's part {name[:100]} is no XML.") from None
        raise Unreadable(
            f"The document's part {name[:100]} declares entities, which are not supported."
        ) from None


def kind_of_archive(body: bytes) -> str | None:
    """`docx`, `xlsx`, `pptx`, `odt` or `epub`; None for other archives. `Unreadable` for a broken one."""
    archive = Archive(body)
    for name, kind in _PARTS.items():
        if name in archive.names:
            return kind
    media_type = archive.read("mimetype")[:100].strip() if "mimetype" in archive.names else b""
    return _MIME_TYPES.get(media_type)
