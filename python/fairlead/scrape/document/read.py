"""From the bytes of a document to markdown: a pure function, run in the processes of `page.pool`, because a
hostile document takes as long and as much memory as it likes.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import orjson

from fairlead.scrape.document import docx, epub, odt, pptx, xlsx
from fairlead.scrape.document.archive import Archive, kind_of_archive
from fairlead.scrape.document.kinds import ARCHIVES, SUPPORTED, ZIP, UnknownKind, kind_of
from fairlead.scrape.page.charset import decode
from fairlead.scrape.page.extract import ReadOptions, Source, Unreadable, extract
from fairlead.scrape.page.feed import html_of_feed
from fairlead.scrape.page.fence import fenced

# The base of relative links in a document that came without an address.
NOWHERE: Final = "http://document.invalid"
MARKDOWN_MAX_CHARS: Final = 10_000_000
CELL_MAX_CHARS: Final = 1_000_000
_DELIMITERS: Final = ",;\t|"


def read_document(source: Source, options: ReadOptions) -> dict[str, Any]:
    """The document as `title`, `markdown`, `detectedType`, `metadata`. `Unreadable` for a kind that is not read,
    and for a broken document.
    """
    archived = kind_of_archive(source.body) if source.body.startswith(ZIP) else None
    try:
        kind = kind_of(source.body, source.content_type, source.url, archived)
    except UnknownKind as found:
        raise Unreadable(
            f"The document is {found}, which is not supported. Supported are {SUPPORTED}."
        ) from None
    metadata: dict[str, Any] = {"bytes": len(source.body)}
    title = ""
    try:
        if kind in ARCHIVES:
            if archived is None:
                raise Unreadable(
                    f"The document is declared as {kind}, but it is no ZIP archive: send another "
                    "contentType."
                )
            title, text = _archived(Archive(source.body), kind, source.url, metadata)
        else:
            content, metadata["charset"] = decode(source.body, source.content_type)
            feed = html_of_feed(content) if kind in {"feed", "xml"} else None
            if kind == "html" or feed is not None:
                kind = "html" if feed is None else "feed"
                title, text = _html(feed or content, source.url, options, metadata)
            else:
                text = _text(content, kind, metadata)
    except RecursionError:
        raise Unreadable("The document is nested too deeply.") from None
    metadata["truncated"] = metadata.get("truncated", False) or len(text) > MARKDOWN_MAX_CHARS
    return {
        "title": title,
        "markdown": text[:MARKDOWN_MAX_CHARS],
        "detectedType": kind,
        "metadata": metadata,
    }


def _archived(archive: Archive, kind: str, url: str, metadata: dict[str, Any]) -> tuple[str, str]:
    """Title and markdown of a document in an archive; all of it is content."""
    options, is_cut = ReadOptions(only_main_content=False), False
    title = _title(archive)
    if kind == "xlsx":
        return title, _sheets(archive, metadata)
    if kind == "docx":
        html = docx.html_of(archive)
    elif kind == "odt":
        html = odt.html_of(archive)
    elif kind == "pptx":
        html, metadata["slides"] = pptx.html_of(archive)
    else:
        title, html, is_cut = epub.html_of(archive)
    found, text = _html(html, url, options, metadata)
    metadata["truncated"] = metadata.get("truncated", False) or is_cut
    return title or found, text


def _html(html: str, url: str, options: ReadOptions, metadata: dict[str, Any]) -> tuple[str, str]:
    source = Source(url, html.encode("utf-8", "replace"), "text/html; charset=utf-8")
    document, _ = extract(
        source, ReadOptions("markdown", only_main_content=options.only_main_content)
    )
    for name in ("description", "language", "truncated", "truncatedBytes", "warnings"):
        if name in document["metadata"]:
            metadata[name] = document["metadata"][name]
    return document["title"], document["content"].replace(f"]({NOWHERE}/", "](/")


def _text(content: str, kind: str, metadata: dict[str, Any]) -> str:
    if kind in {"csv", "tsv"}:
        return _csv(content, metadata)
    if kind == "json":
        try:
            content = orjson.dumps(orjson.loads(content), option=orjson.OPT_INDENT_2).decode()
        except ValueError:
            raise Unreadable(
                "The document is declared as JSON, but it is not JSON: send another contentType."
            ) from None
    if kind in {"json", "xml", "feed"}:
        return fenced(content.strip(), "json" if kind == "json" else "xml")
    return content


def _csv(content: str, metadata: dict[str, Any]) -> str:
    head = Counter(content[:10_000].partition("\n")[0])
    delimiter = max(_DELIMITERS, key=lambda each: head[each])
    csv.field_size_limit(CELL_MAX_CHARS)
    try:
        rows = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
        text, metadata["rows"], metadata["truncated"] = _table(row for row in rows if any(row))
    except csv.Error as fault:
        raise Unreadable(f"The document cannot be read as CSV: {fault}.") from None
    return text


def _sheets(archive: Archive, metadata: dict[str, Any]) -> str:
    parts: list[str] = []
    names: list[str] = []
    rows, remaining = 0, MARKDOWN_MAX_CHARS
    metadata["truncated"] = False
    for name, lines in xlsx.sheets_of(archive):
        text, count, is_cut = _table(lines, remaining)
        names.append(name)
        parts.append(f"## {_one_line(name)}\n\n{text}".rstrip())
        rows, remaining = rows + count, remaining - len(text)
        if is_cut:
            metadata["truncated"] = True
            break
    metadata |= {"sheets": names, "rows": rows}
    return "\n\n".join(parts)


def _table(rows: Iterable[list[str]], remaining: int = MARKDOWN_MAX_CHARS) -> tuple[str, int, bool]:
    """A table of which the first row is the head, how many rows it has, and whether it was cut."""
    taken: list[list[str]] = []
    is_cut = False
    for row in rows:
        cells = [_one_line(each) for each in row]
        remaining -= sum(map(len, cells)) + 3 * len(cells)
        if remaining < 0:
            is_cut = True
            break
        taken.append(cells)
    columns = max(map(len, taken), default=0)
    lines = ["| " + " | ".join(row + [""] * (columns - len(row))) + " |" for row in taken]
    if lines:
        lines.insert(1, "|" + " --- |" * columns)
    return "\n".join(lines), max(0, len(taken) - 1), is_cut


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _title(archive: Archive) -> str:
    if "docProps/core.xml" not in archive.names:
        return ""
    found = archive.tree("docProps/core.xml").find("{http://purl.org/dc/elements/1.1/}title")
    return _one_line(found.text or "")[:500] if found is not None else ""
