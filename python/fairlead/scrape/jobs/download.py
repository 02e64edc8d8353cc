"""All pages of a crawl or a batch at once: one JSON document, or a ZIP archive with a file for each page.

Both are made while they are sent, `PAGES_AT_ONCE` at a time, so that the largest costs no more memory than the
smallest. A running job gives the pages that it has so far.
"""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from collections.abc import AsyncIterator
from typing import Any, Final

import orjson
from starlette.responses import StreamingResponse

from fairlead.errors import NotFound
from fairlead.net.url import split_url
from fairlead.scrape.jobs.table import Job, Kind, Page, PageSelection, find_job, list_pages
from fairlead.store.file import Connection
from fairlead.store.services import Services

PAGES_AT_ONCE: Final = 50
_ENDINGS: Final = {"html": "html", "markdown": "md", "text": "txt"}
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


async def json_download(
    services: Services, kind: Kind, job_id: str, owner: str
) -> StreamingResponse:
    """The pages as one JSON document; `NotFound` while there is none."""
    job, first = await _first_pages(services, kind, job_id, owner)
    return _file(_json_parts(services, job, first), f"{kind}-{job.id}.json", "application/json")


async def zip_download(
    services: Services, kind: Kind, job_id: str, owner: str, form: str
) -> StreamingResponse:
    """The pages as an archive: contents alone (`markdown`) or whole documents (`json`)."""
    job, first = await _first_pages(services, kind, job_id, owner)
    return _file(_zip_parts(services, job, first, form), f"{kind}-{job.id}.zip", "application/zip")


async def _first_pages(
    services: Services, kind: Kind, job_id: str, owner: str
) -> tuple[Job, list[Page]]:
    def read_first_pages(con: Connection) -> tuple[Job, list[Page]]:
        job = find_job(con, job_id, kind, owner)
        return job, list_pages(con, job.id, 0, PAGES_AT_ONCE, PageSelection("completed"))

    job, pages = await services.state.read(read_first_pages)
    if not pages:
        raise NotFound("There is no page yet.", param="id")
    return job, pages


async def _batches(services: Services, job: Job, pages: list[Page]) -> AsyncIterator[list[Page]]:
    while pages:
        yield pages
        after = pages[-1].number
        pages = await services.state.read(
            lambda con, after=after: list_pages(  # type: ignore[misc]
                con, job.id, after, PAGES_AT_ONCE, PageSelection("completed")
            )
        )


async def _json_parts(services: Services, job: Job, first: list[Page]) -> AsyncIterator[bytes]:
    name = "crawlId" if job.kind == "crawl" else "batchId"
    yield b'{"%s":%s,"originUrl":%s,"pages":[' % (
        name.encode(),
        orjson.dumps(job.id),
        orjson.dumps(job.url),
    )
    count = 0
    async for pages in _batches(services, job, first):
        yield b",".join(
            ([b""] if count else []) + [(page.document or "null").encode() for page in pages]
        )
        count += len(pages)
    yield b'],"count":%d}' % count


async def _zip_parts(
    services: Services, job: Job, first: list[Page], form: str
) -> AsyncIterator[bytes]:
    sink = _Sink()
    archive = zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED)
    listed: list[dict[str, Any]] = []
    async for pages in _batches(services, job, first):
        listed += await asyncio.to_thread(_add, archive, pages, form)
        yield sink.drain()
    manifest = {"id": job.id, "originUrl": job.url, "count": len(listed), "pages": listed}
    archive.writestr("manifest.json", orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
    archive.close()
    yield sink.drain()


def _add(archive: zipfile.ZipFile, pages: list[Page], form: str) -> list[dict[str, Any]]:
    listed = []
    for page in pages:
        document = orjson.loads(page.document or "{}")
        ending = "json" if form == "json" else _ENDINGS.get(document.get("contentType", ""), "txt")
        path = _UNSAFE.sub("-", split_url(page.url).path).strip("-")[:60] or "index"
        name = f"{page.number:05d}-{path}.{ending}"
        text = page.document if form == "json" else document.get("content", "")
        archive.writestr(name, text or "")
        listed.append({"file": name, "url": page.url, "title": document.get("title", "")})
    return listed


class _Sink(io.RawIOBase):
    """The unsent bytes of an archive: it takes writes in order, cannot seek, and hands over what it holds."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def drain(self) -> bytes:
        """The bytes that were written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _file(parts: AsyncIterator[bytes], name: str, kind: str) -> StreamingResponse:
    return StreamingResponse(
        parts,
        media_type=kind,
        headers={
            "content-disposition": f'attachment; filename="{name}"',
            "x-content-type-options": "nosniff",
        },
    )
