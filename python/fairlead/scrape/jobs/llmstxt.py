"""Writing `llms.txt` (llmstxt.org): a site's pages in one file for models, from the documents of a crawl."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

import orjson

from fairlead.net.url import split_url
from fairlead.scrape.jobs.table import Page

FULL_MAX_CHARS: Final = 5_000_000
LINE_MAX_CHARS: Final = 300
_BLANKS = re.compile(r"\s+")


def read_entries(pages: list[Page], text: FullText | None) -> list[dict[str, Any]]:
    """The title, address and description of each page; its content goes to `text`, if there is one."""
    entries = []
    for page in pages:
        document = orjson.loads(page.document or "{}")
        if text is not None:
            text.add(document)
        description = _line(document["metadata"].get("description", ""))
        entries.append(
            {
                "title": _line(document["title"]),
                "url": document["url"],
                "metadata": {"description": description},
            }
        )
    return entries


def llms_txt(documents: list[dict[str, Any]]) -> str:
    """The file: the site's name and description, then its pages by the first part of their paths. The first
    document is the start page.
    """
    first, sections = documents[0], dict[str, list[str]]()
    for document in documents:
        description = _line(document["metadata"].get("description", ""))
        title = _line(document["title"]).replace("[", "(").replace("]", ")") or document["url"]
        line = f"- [{title}]({document['url']})" + (f": {description}" if description else "")
        sections.setdefault(_section(document["url"]), []).append(line)
    head = [f"# {_line(first['title']) or split_url(first['url']).netloc}"]
    if description := _line(first["metadata"].get("description", "")):
        head.append(f"> {description}")
    for name, lines in sections.items():
        head.append(f"## {name}\n\n" + "\n".join(lines))
    return "\n\n".join(head) + "\n"


class FullText:
    """The contents of the pages, one after another, up to `FULL_MAX_CHARS`."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._chars = 0

    def add(self, document: dict[str, Any]) -> None:
        """Adds a page's content."""
        if self._chars >= FULL_MAX_CHARS:
            return
        title = _line(document["title"]) or document["url"]
        gap = "\n\n---\n\n" if self._parts else ""
        part = f"{gap}# {title}\n\nSource: {document['url']}\n\n{document['content']}"
        self._parts.append(part[: FULL_MAX_CHARS - self._chars])
        self._chars += len(self._parts[-1])

    def whole(self) -> str:
        """The text."""
        return "".join(self._parts) + "\n"


def _section(url: str) -> str:
    first, slash, _ = split_url(url).path.lstrip("/").partition("/")
    return _line(unquote(first)).replace("-", " ").capitalize() if slash else "Pages"


def _line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()[:LINE_MAX_CHARS]
