"""The route that turns a document into markdown: `POST /api/parse`."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Any, Final

from fastapi import APIRouter

from fairlead.errors import InvalidRequest, TooLarge
from fairlead.scrape.address import check_url
from fairlead.scrape.calls import answer_deadline
from fairlead.scrape.document.read import NOWHERE
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.page.extract import Source
from fairlead.scrape.requests.page import ParseRequest
from fairlead.scrape.scraper import Scraper, scraper_of
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])

DOCUMENT_MAX_BYTES: Final = 25 * 1024 * 1024


@router.post("/parse", summary="A document as markdown")
async def parse(
    parse_request: ParseRequest, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """HTML, plain text, Markdown, CSV, TSV, JSON, XML, DOCX or XLSX of 25 MiB at most, sent as base64 or
    fetched. Nothing is kept.
    """
    scraper = scraper_of(services)
    async with answer_deadline():
        try:
            source = await _source(scraper, parse_request)
            document = await scraper.read_document(
                source, is_main=parse_request.only_main_content, owner=owner
            )
        except FetchFailed as failure:
            raise failure.as_refusal() from None
    return {"success": True, **({"url": source.url} if parse_request.url else {}), **document}


async def _source(scraper: Scraper, parse_request: ParseRequest) -> Source:
    if parse_request.content is not None:
        try:
            body = await asyncio.to_thread(base64.b64decode, parse_request.content, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidRequest("content is not base64.", param="content") from None
        if len(body) > DOCUMENT_MAX_BYTES:
            raise TooLarge(f"content is larger than {DOCUMENT_MAX_BYTES} bytes.", param="content")
        return Source(f"{NOWHERE}/", body, parse_request.content_type)
    url = check_url(parse_request.url or "", scraper.egress)
    async with scraper.admit(url) as settings:
        fetched = await scraper.fetcher.fetch(url, max_bytes=DOCUMENT_MAX_BYTES)
    await scraper.check_redirect(fetched, settings)
    if fetched.status >= 400:
        raise FetchFailed(
            f"The address answered {fetched.status}.", status=fetched.status, code="status"
        )
    kind = parse_request.content_type or fetched.content_type
    return Source(fetched.url, fetched.body, kind, fetched.redirects)
