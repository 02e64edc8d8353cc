"""The kind of a document: by its first bytes, its media type, its name."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

TYPES: Final = {
    "html": ("text/html", "application/xhtml+xml"),
    "text": ("text/plain",),
    "markdown": ("text/markdown", "text/x-markdown"),
    "csv": ("text/csv", "application/csv"),
    "tsv": ("text/tab-separated-values",),
    "json": ("application/json", "text/json"),
    "xml": ("application/xml", "text/xml"),
    "feed": ("application/rss+xml", "application/atom+xml", "application/rdf+xml"),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
    "pptx": ("application/vnd.openxmlformats-officedocument.presentationml.presentation",),
    "odt": ("application/vnd.oasis.opendocument.text",),
    "epub": ("application/epub+zip",),
}
_NAMED: Final = {name: kind for kind, names in TYPES.items() for name in (kind, *names)}
_ENDINGS: Final = {kind: kind for kind in TYPES} | {
    "htm": "html",
    "xhtml": "html",
    "txt": "text",
    "log": "text",
    "md": "markdown",
    "rss": "feed",
    "atom": "feed",
}
# Media types that say nothing: servers send them for files that they do not know.
_VAGUE: Final = frozenset(
    ["", "application/octet-stream", "binary/octet-stream", "application/zip", "text/plain"]
)
_FOREIGN: Final = (
    (b"%PDF-", "PDF"),
    (b"\xd0\xcf\x11\xe0", "an office document of before 2007"),
    (b"{\\rtf", "RTF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"\x1f\x8b", "a compressed file"),
)
ZIP: Final = b"PK\x03\x04"
SUPPORTED: Final = (
    "HTML, plain text, Markdown, CSV, TSV, JSON, XML, RSS, Atom, DOCX, XLSX, PPTX, ODT and EPUB"
)
ARCHIVES: Final = frozenset(["docx", "xlsx", "pptx", "odt", "epub"])


class UnknownKind(ValueError):
    """A document of a kind that is not read; the text is a phrase such as `PDF`."""


def kind_of(body: bytes, content_type: str, url: str, archived: str | None) -> str:
    """The document's kind, a name of `TYPES`. `archived` is the kind that an archive's files show, None for other
    archives. `UnknownKind`.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    for start, name in _FOREIGN:
        if body.startswith(start):
            raise UnknownKind(name)
    if body.startswith(ZIP):
        if archived is None:
            raise UnknownKind("an archive of another kind")
        return archived
    if media_type not in _VAGUE:
        kind = _NAMED.get(media_type) or _by_suffix(media_type)
        if kind is None:
            raise UnknownKind(media_type[:100])
        return kind
    ending = unquote(urlsplit(url).path).rpartition("/")[2].rpartition(".")[2].lower()
    return _ENDINGS.get(ending) or ("text" if media_type == "text/plain" else _by_content(body))


def _by_suffix(media_type: str) -> str | None:
    if media_type.endswith("+json"):
        return "json"
    if media_type.endswith("+xml"):
        return "xml"
    return "text" if media_type.startswith("text/") else None


def _by_content(body: bytes) -> str:
    head = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype html", b"<html")) or b"<html" in head or b"<body" in head:
        return "html"
    if head.startswith(b"<?xml"):
        return "xml"
    if head.startswith((b"{", b"[")):
        return "json"
    if b"\0" in head and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnknownKind("a file of bytes")
    return "text"
