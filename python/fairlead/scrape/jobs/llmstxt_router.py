"""`llms.txt` of a site: what is there, in one file for models to read (llmstxt.org), from a crawl of its own."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson
from fastapi import APIRouter

from fairlead.scrape.address import checked
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.jobs.table import (
    Job,
    Page,
    Place,
    Progress,
    find_job,
    insert_job,
    list_pages,
    progress_of,
)
from fairlead.scrape.options import LlmsTxtAsk
from fairlead.scrape.owner import BaseDep, OwnerDep
from fairlead.scrape.router import job_view, new_job, progress_view
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
    ask: LlmsTxtAsk, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """A job's id and where to ask for it. The pages are those of the sitemaps and what is linked."""
    url = checked(ask.url, scraper_of(services).egress)
    asked = ask.model_dump(mode="json", by_alias=True)
    job = new_job("llmstxt", owner, url, asked, ask.max_urls)
    await services.state.database.write(lambda con: insert_job(con, job, [Place(0, 0, url)]))
    JobRunner.of(services).wake()
    return {
        "success": True, "id": job.id, "url": f"{base}/api/llmstxt/{job.id}", "status": job.status,
    }  # fmt: skip


@router.get("/{job_id}", summary="A site's llms.txt, or how far it is")
async def show(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`result` has `host`, `pageCount`, `llmstxt`, and `llmsFullTxt` where it was asked for."""

    def look(con: Connection) -> tuple[Job, Progress, list[Page]]:
        job = find_job(con, job_id, "llmstxt", owner)
        pages = (
            list_pages(con, job.id, 0, PAGES_MAX, status="completed") if not job.is_active else []
        )
        return job, progress_of(con, job), pages

    job, progress, pages = await services.state.read(look)
    view: dict[str, Any] = {
        "success": True,
        **job_view(job),
        "progress": progress_view(progress),
    }
    if job.status == "completed":
        documents = [
            orjson.loads(page.document or "{}") for page in sorted(pages, key=lambda p: p.place)
        ]
        view["result"] = {
            "host": urlsplit(job.url).netloc, "pageCount": len(documents), "llmstxt": llms_txt(documents),
        }  # fmt: skip
        if orjson.loads(job.options)["includeFullText"]:
            view["result"]["llmsFullTxt"] = full_text(documents)
    return view


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


def full_text(documents: list[dict[str, Any]]) -> str:
    """The pages themselves, one after another, as far as `FULL_MAX_CHARS` goes."""
    parts = [
        f"# {_line(document['title']) or document['url']}\n\nSource: {document['url']}\n\n{document['content']}"
        for document in documents
    ]
    return "\n\n---\n\n".join(parts)[:FULL_MAX_CHARS] + "\n"


def _section(url: str) -> str:
    first, slash, _ = urlsplit(url).path.lstrip("/").partition("/")
    return _line(unquote(first)).replace("-", " ").capitalize() if slash else "Pages"


def _line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()[:LINE_MAX_CHARS]
