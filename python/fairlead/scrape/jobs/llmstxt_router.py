"""`llms.txt` of a site: what is there, in one file for models to read (llmstxt.org), from a crawl of its own."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson
from fastapi import APIRouter

from fairlead.scrape.address import check_url
from fairlead.scrape.jobs.start import new_job, start_job
from fairlead.scrape.jobs.table import (
    Page,
    Place,
    find_job_progress,
    list_pages,
)
from fairlead.scrape.jobs.view import job_view, progress_view
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.jobs import LlmsTxtRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/llmstxt", tags=["scraping"])

PAGES_MAX: Final = 500
FULL_MAX_CHARS: Final = 5_000_000
LINE_MAX_CHARS: Final = 300
_BLANKS = re.compile(r"\s+")


@router.post("", summary="Write a site's llms.txt in the background")
async def start(
    ask: LlmsTxtRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """A job's id and where to ask for it. The pages are those of the sitemaps and what is linked."""
    url = check_url(ask.url, scraper_of(services).egress)
    job = new_job("llmstxt", owner, url, ask, ask.max_urls)
    return await start_job(services, job, [Place(0, 0, url)], base)


@router.get("/{job_id}", summary="A site's llms.txt, or how far it is")
async def show(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`result` has `host`, `pageCount`, `llmstxt`, and `llmsFullTxt` where it was asked for."""
    job, progress = await services.state.read(
        lambda con: find_job_progress(con, job_id, "llmstxt", owner)
    )
    view: dict[str, Any] = {
        "success": True,
        **job_view(job),
        "progress": progress_view(progress),
    }
    if job.status == "completed":
        wants_text = orjson.loads(job.options)["includeFullText"]
        told: list[dict[str, Any]] = []
        text = FullText()
        after = -1
        # Some pages at a time: of all together only what is written of them is held.
        while pages := await services.state.read(partial(_some, job_id=job.id, after=after)):
            after = pages[-1].place
            told += await asyncio.to_thread(_read, pages, text if wants_text else None)
        view["result"] = {
            "host": urlsplit(job.url).netloc,
            "pageCount": len(told),
            "llmstxt": llms_txt(told),
        }
        if wants_text:
            view["result"]["llmsFullTxt"] = text.whole()
    return view


def _some(con: Connection, job_id: str, after: int) -> list[Page]:
    return list_pages(con, job_id, after, PAGES_MAX, status="completed", order="place")


def _read(pages: list[Page], text: FullText | None) -> list[dict[str, Any]]:
    """What of the pages stands in the file, which is little."""
    told = []
    for page in pages:
        document = orjson.loads(page.document or "{}")
        if text is not None:
            text.add(document)
        said = _line(document["metadata"].get("description", ""))
        told.append(
            {
                "title": _line(document["title"]),
                "url": document["url"],
                "metadata": {"description": said},
            }
        )
    return told


def llms_txt(documents: list[dict[str, Any]]) -> str:
    """The file: the site's name and what it says of itself, then its pages by the first part of their
    paths. The first document is the start page.
    """
    first, sections = documents[0], dict[str, list[str]]()
    for document in documents:
        said = _line(document["metadata"].get("description", ""))
        title = _line(document["title"]).replace("[", "(").replace("]", ")") or document["url"]
        line = f"- [{title}]({document['url']})" + (f": {said}" if said else "")
        sections.setdefault(_section(document["url"]), []).append(line)
    head = [f"# {_line(first['title']) or urlsplit(first['url']).netloc}"]
    if said := _line(first["metadata"].get("description", "")):
        head.append(f"> {said}")
    for name, lines in sections.items():
        head.append(f"## {name}\n\n" + "\n".join(lines))
    return "\n\n".join(head) + "\n"


class FullText:
    """The pages themselves, one after another, as far as `FULL_MAX_CHARS` goes."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._chars = 0

    def add(self, document: dict[str, Any]) -> None:
        """The next page."""
        if self._chars >= FULL_MAX_CHARS:
            return
        title = _line(document["title"]) or document["url"]
        gap = "\n\n---\n\n" if self._parts else ""
        part = f"{gap}# {title}\n\nSource: {document['url']}\n\n{document['content']}"
        self._parts.append(part[: FULL_MAX_CHARS - self._chars])
        self._chars += len(self._parts[-1])

    def whole(self) -> str:
        """All of it."""
        return "".join(self._parts) + "\n"


def _section(url: str) -> str:
    first, slash, _ = urlsplit(url).path.lstrip("/").partition("/")
    return _line(unquote(first)).replace("-", " ").capitalize() if slash else "Pages"


def _line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()[:LINE_MAX_CHARS]
