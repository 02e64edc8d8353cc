"""Firecrawl's route that turns a document into markdown."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import orjson
from fastapi import APIRouter
from starlette.requests import Request

from fairlead.calls.form import read_form
from fairlead.errors import InvalidRequest, TooLarge
from fairlead.scrape.calls import answer_deadline
from fairlead.scrape.document.read import NOWHERE
from fairlead.scrape.document.router import DOCUMENT_MAX_BYTES
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.firecrawl.options import Translated, translate, validated, warning_of
from fairlead.scrape.firecrawl.requests import PageOptions
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.model.forms import ModelFailed
from fairlead.scrape.page.extract import Source
from fairlead.scrape.scraper import Scraper, scraper_of
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/v2", tags=["firecrawl"])

_FORMATS: Final = frozenset({"markdown", "json", "summary"})
"""The formats of a document. Others need a page."""


@router.post("/parse", summary="A document as markdown (Firecrawl)", name="firecrawl_parse")
async def parse(request: Request, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """A form with `file`, of 25 MiB at most, and `options` as JSON. Nothing is kept."""
    form = read_form(request)
    translated = _options(form.fields)
    body = await request.body()
    if len(body) > DOCUMENT_MAX_BYTES:
        raise TooLarge(f"file is larger than {DOCUMENT_MAX_BYTES} bytes.", param="file")
    scraper = scraper_of(services)
    await scraper.check_model_forms(translated.options, owner)
    # Documents of no known media type are known by the ending of their name.
    source = Source(f"{NOWHERE}/{quote(form.name, safe='')}", body, form.mime_type or "")
    async with answer_deadline():
        try:
            page = await _page(scraper, source, translated, owner)
        except ModelFailed as failure:
            raise failure.error from None
        except FetchFailed as failure:
            raise failure.as_refusal() from None
    page["metadata"] |= {"sourceURL": form.name, "statusCode": 200}
    without = [f"formats ({name})" for name in _formats(translated) if name not in _FORMATS]
    return {"success": True, "data": {**page, **warning_of([*translated.passed_over, *without])}}


def _options(fields: dict[str, str]) -> Translated:
    try:
        sent = orjson.loads(fields.get("options") or "{}")
    except orjson.JSONDecodeError:
        raise InvalidRequest("options is not JSON.", param="options") from None
    return translate(validated(PageOptions, sent))


def _formats(translated: Translated) -> list[str]:
    """The requested formats. The content's form `text` stands for none."""
    form = translated.options.extractor_format
    return [*([] if form in {None, "text"} else [str(form)]), *translated.options.formats]


async def _page(
    scraper: Scraper, source: Source, translated: Translated, owner: str
) -> dict[str, Any]:
    options = translated.options
    read = await scraper.read_document(source, is_main=options.only_main_content, owner=owner)
    metadata = {**read["metadata"], "title": read["title"], "contentType": read["detectedType"]}
    document = {"content": read["markdown"], "metadata": metadata}
    if options.model_forms:
        await scraper.add_model_forms(document, 200, options, owner)
    page: dict[str, Any] = {"metadata": metadata, **document.get("formats", {})}
    if options.extractor_format == "markdown":
        page["markdown"] = read["markdown"]
    return page
