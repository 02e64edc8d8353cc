"""Calls that several routes make: a page read now, a page's data or summary by a model, all within one deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fairlead.calls.model import Model, ModelAnswer
from fairlead.errors import InvalidRequest, UpstreamTimeout
from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.address import check_url
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.model.extract import extract_by_schema, summarize
from fairlead.scrape.model.forms import ModelFailed
from fairlead.scrape.requests.page import (
    ExtractRequest,
    ScrapeOptions,
    SummarizeOptions,
    SummarizeRequest,
)
from fairlead.scrape.scraper import ScrapeResult, scraper_of
from fairlead.store.services import Services

# The relay gives a request 60 s; an answer of ours, which names a way out, is better than its timeout.
ANSWER_DEADLINE_S: Final = 55.0


@asynccontextmanager
async def answer_deadline() -> AsyncIterator[None]:
    """`UpstreamTimeout` for a body that takes longer than `ANSWER_DEADLINE_S`."""
    try:
        async with asyncio.timeout(ANSWER_DEADLINE_S):
            yield
    except TimeoutError:
        raise UpstreamTimeout(
            f"This took longer than {ANSWER_DEADLINE_S:g} s; use a background job."
        ) from None


async def read_page(
    services: Services, url: str, options: ScrapeOptions, owner: str
) -> ScrapeResult:
    """Scrapes a page. A failure is `InvalidRequest` with the address, the reason and the page's status."""
    if (options.timeout_s or 0) > ANSWER_DEADLINE_S:
        raise InvalidRequest(
            f"options.timeout above {ANSWER_DEADLINE_S * 1000:g} needs a background job: POST /api/scrape/async.",
            param="options.timeout",
        )
    started = time.monotonic()
    try:
        async with answer_deadline():
            return await scraper_of(services).scrape(url, options, owner)
    except ModelFailed as failure:
        raise failure.error from None
    except FetchFailed as failure:
        metadata: dict[str, Any] = {
            "timestamp": iso(moment_of(now_ms())),
            "processingTime": round((time.monotonic() - started) * 1000),
            "fromCache": False,
            "reason": failure.code,
        }
        if failure.status is not None:
            metadata["status"] = failure.status
        raise InvalidRequest(failure.reason, extra={"url": url, "metadata": metadata}) from None


async def extract_page(services: Services, body: ExtractRequest, owner: str) -> dict[str, Any]:
    """Extracts data by JSON Schema from one page, with a model; the answer of `POST /api/extract-schema`."""
    url = check_url(body.url, scraper_of(services).egress)
    name = await resolve_model(services, body.options.model)
    scraped = await _read_markdown(services, url, body.options, owner)
    model = Model(
        services.config,
        owner,
        name,
        temperature=body.options.temperature,
        max_tokens=body.options.max_tokens,
    )
    data, answer = await extract_by_schema(
        model,
        scraped.document["content"],
        scraper_of(services).schema(body.schema_, owner),
        body.options.instructions,
    )
    return {
        "success": True,
        "url": scraped.url,
        "title": scraped.document["title"],
        "extractedData": data,
        "contentType": "markdown",
        "metadata": _with_model(scraped, name, answer),
    }


async def summarize_page(services: Services, body: SummarizeRequest, owner: str) -> dict[str, Any]:
    """Summarizes one page with a model; the answer of `POST /api/summarize`."""
    url = check_url(body.url, scraper_of(services).egress)
    name = await resolve_model(services, body.options.model)
    scraped = await _read_markdown(services, url, body.options, owner)
    model = Model(services.config, owner, name, temperature=body.options.temperature)
    answer = await summarize(model, scraped.document["content"], body.max_length)
    return {
        "success": True,
        "url": scraped.url,
        "title": scraped.document["title"],
        "summary": answer.text,
        "metadata": _with_model(scraped, name, answer),
    }


async def resolve_model(
    services: Services, requested: str | None, param: str = "options.model"
) -> str:
    """The requested model, else the one of the setting `scrapeModel`; `InvalidRequest` where neither is there."""
    name = requested or (await scraper_of(services).settings(fresh=True)).scrape_model
    if name is None:
        raise InvalidRequest(
            f"{param} is not sent and the setting scrapeModel is not set: name a model.",
            param=param,
        )
    return name


async def _read_markdown(
    services: Services, url: str, options: SummarizeOptions, owner: str
) -> ScrapeResult:
    read = options.model_dump(exclude={"temperature", "model", "max_tokens", "instructions"})
    read["extractor_format"] = read["extractor_format"] or "markdown"
    return await read_page(
        services, url, ScrapeOptions.model_validate(read, by_name=True, by_alias=False), owner
    )


def _with_model(scraped: ScrapeResult, name: str, answer: ModelAnswer) -> dict[str, Any]:
    """The page's metadata with the model and its tokens."""
    return {**scraped.document["metadata"], "model": name, "tokens": answer.tokens}
