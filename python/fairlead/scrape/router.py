"""One page at a time: scrape, extract, summarize, and the cache."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final
from uuid import uuid4

import orjson
from fastapi import APIRouter, Body, Response
from starlette.requests import Request

from fairlead.errors import InvalidRequest, UpstreamTimeout
from fairlead.model import Model, ModelAnswer
from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.address import checked
from fairlead.scrape.cache import forget_cached
from fairlead.scrape.fetch import FetchFailed
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.jobs.table import (
    FIRST_STATUS,
    Job,
    Kind,
    Place,
    Progress,
    find_job,
    insert_job,
    list_pages,
)
from fairlead.scrape.model import extract_by_schema, summarize
from fairlead.scrape.options import (
    CacheAsk,
    ExtractAsk,
    ScrapeAsk,
    ScrapeOptions,
    SummarizeAsk,
    SummarizeOptions,
)
from fairlead.scrape.owner import BaseDep, OwnerDep
from fairlead.scrape.quota import daily_calls_of, day_of
from fairlead.scrape.scraper import Scraped, scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])

# The gate gives a request a minute; an answer of ours is better than its.
ANSWER_DEADLINE_S: Final = 55.0


@router.post("/scrape", summary="Scrape a page")
async def scrape(ask: ScrapeAsk, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """The page in the form of `options.extractorFormat`. A page that was not read is 400."""
    url = checked(ask.url, scraper_of(services).egress)
    scraped = await read_page(services, url, ask.options, owner)
    return {"success": True, **scraped.document}


@router.post("/scrape/async", summary="Scrape a page in the background")
async def scrape_async(
    ask: ScrapeAsk, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """A job's id and where to ask for it."""
    url = checked(ask.url, scraper_of(services).egress)
    job = new_job("scrape", owner, url, ask.model_dump(mode="json", by_alias=True), 1)
    await services.state.database.write(lambda con: insert_job(con, job, [Place(0, 0, url)]))
    JobRunner.of(services).wake()
    return {
        "success": True,
        "id": job.id,
        "url": f"{base}/api/scrape/job/{job.id}",
        "status": job.status,
    }


@router.get(
    "/scrape/job/{job_id}",
    summary="A background scrape and its result",
    response_model=dict[str, Any],
)
async def scrape_job(job_id: str, services: ServicesDep, owner: OwnerDep) -> Response:
    """`status` is pending, processing, completed or failed; `result` is there when it is completed."""

    def look(con: Connection) -> dict[str, Any]:
        job = find_job(con, job_id, "scrape", owner)
        view: dict[str, Any] = {"success": True, **job_view(job)}
        for page in list_pages(con, job.id, 0, 1):
            if page.document is not None:
                view["result"] = orjson.Fragment(page.document)
        return view

    view = await services.state.read(look)
    return Response(orjson.dumps(view), media_type="application/json")


@router.get("/reader", response_model=None, summary="A page as markdown")
async def reader(
    url: str, services: ServicesDep, owner: OwnerDep, request: Request
) -> Response | dict[str, Any]:
    """The main content; bare where `Accept` asks for text/markdown or text/plain, else as a scrape tells it."""
    options = ScrapeOptions.model_validate({"extractorFormat": "markdown"})
    scraped = await read_page(services, checked(url, scraper_of(services).egress), options, owner)
    accepted = request.headers.get("accept", "")
    if "text/markdown" in accepted or accepted.startswith("text/plain"):
        return Response(
            scraped.document["content"] + "\n",
            media_type="text/markdown",
            headers={"vary": "accept", "x-content-type-options": "nosniff"},
        )
    return {"success": True, **scraped.document}


@router.post("/extract-schema", summary="Extract data of a JSON Schema from a page")
async def extract_schema(ask: ExtractAsk, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """The page's data, valid against `schema`, by the model of `options.model` or `scrapeModel`."""
    await scraper_of(services).schema(ask.schema_, owner).check()
    async with within_a_minute():
        return await extraction(services, ask, owner)


@router.post("/summarize", summary="Summarize a page")
async def summarize_page(
    ask: SummarizeAsk, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """At most `maxLength` words, by the model of `options.model` or the setting `scrapeModel`."""
    url = checked(ask.url, scraper_of(services).egress)
    async with within_a_minute():
        name = await model_name(services, ask.options.model)
        scraped = await _markdown(services, url, ask.options, owner)
        model = Model(services.config, owner, name, temperature=ask.options.temperature)
        asked = await summarize(model, scraped.document["content"], ask.max_length)
    return {
        "success": True,
        "url": scraped.url,
        "title": scraped.document["title"],
        "summary": asked.text,
        "metadata": _with_model(scraped, name, asked),
    }


@router.delete("/cache", summary="Forget scraped pages: one address, or all of the caller's")
async def forget(
    services: ServicesDep,
    owner: OwnerDep,
    ask: Annotated[CacheAsk | None, Body()] = None,
) -> dict[str, Any]:
    """Drops the caller's own copies."""
    url = checked(ask.url, scraper_of(services).egress) if ask and ask.url else None
    count = await services.state.database.write(lambda con: forget_cached(con, owner, url))
    message = f"Cache invalidated for URL: {url}" if url else "Cache cleared"
    return {"success": True, "message": message, "count": count}


@router.get("/usage", summary="How many calls the key has made today, and has left")
async def usage(services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Counted are calls that do something, not looks at what is there. The day is that of UTC."""
    at_ms = now_ms()
    made = await daily_calls_of(services).made(owner, at_ms)
    most = (await scraper_of(services).settings(fresh=True)).scrape_requests_per_day
    return {
        "success": True,
        "date": day_of(at_ms),
        "usage": {
            "requestsToday": made,
            "dailyLimit": most or None,
            "remaining": max(0, most - made) if most else None,
            "unlimited": not most,
        },
    }


@router.get("/scrape/openapi.json", summary="The scraping API as an OpenAPI document")
async def description(owner: OwnerDep) -> Response:  # noqa: ARG001 - only a key is told
    """OpenAPI 3.0.0, description version 1.0.0."""
    from fairlead.scrape.description import scraping_text  # noqa: PLC0415 - it describes this router

    return Response(scraping_text(), media_type="application/json")


@asynccontextmanager
async def within_a_minute() -> AsyncIterator[None]:
    """`UpstreamTimeout` for what takes longer than a request may."""
    try:
        async with asyncio.timeout(ANSWER_DEADLINE_S):
            yield
    except TimeoutError:
        raise UpstreamTimeout(
            f"This took longer than {ANSWER_DEADLINE_S:g} s; use a background job."
        ) from None


async def read_page(services: Services, url: str, options: ScrapeOptions, owner: str) -> Scraped:
    """A page, or `InvalidRequest` with what is known of the failure."""
    started = time.monotonic()
    try:
        async with within_a_minute():
            return await scraper_of(services).scrape(url, options, owner)
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


async def extraction(services: Services, ask: ExtractAsk, owner: str) -> dict[str, Any]:
    """The answer of an extraction."""
    url = checked(ask.url, scraper_of(services).egress)
    name = await model_name(services, ask.options.model)
    scraped = await _markdown(services, url, ask.options, owner)
    model = Model(
        services.config,
        owner,
        name,
        temperature=ask.options.temperature,
        max_tokens=ask.options.max_tokens,
    )
    data, asked = await extract_by_schema(
        model,
        scraped.document["content"],
        scraper_of(services).schema(ask.schema_, owner),
        ask.options.instructions,
    )
    return {
        "success": True,
        "url": scraped.url,
        "title": scraped.document["title"],
        "extractedData": data,
        "contentType": "markdown",
        "metadata": _with_model(scraped, name, asked),
    }


async def _markdown(services: Services, url: str, options: SummarizeOptions, owner: str) -> Scraped:
    read = options.model_dump(exclude={"temperature", "model", "max_tokens", "instructions"})
    read["extractor_format"] = read["extractor_format"] or "markdown"
    return await read_page(
        services, url, ScrapeOptions.model_validate(read, by_name=True, by_alias=False), owner
    )


async def model_name(services: Services, said: str | None, param: str = "options.model") -> str:
    """The model that is to be asked; `InvalidRequest` where nobody has named one."""
    name = said or (await scraper_of(services).settings(fresh=True)).scrape_model
    if name is None:
        raise InvalidRequest(
            f"{param} is not sent and the setting scrapeModel is not set: name a model.",
            param=param,
        )
    return name


def _with_model(scraped: Scraped, name: str, asked: ModelAnswer) -> dict[str, Any]:
    return {**scraped.document["metadata"], "model": name, "tokens": asked.tokens}


def new_job(kind: Kind, owner: str, url: str, asked: dict[str, Any], pages_max: int) -> Job:
    """A job that is about to be stored."""
    return Job(
        id=str(uuid4()),
        kind=kind,
        owner=owner,
        status=FIRST_STATUS[kind],
        url=url,
        options=orjson.dumps(asked).decode(),
        pages_max=pages_max,
        error=None,
        created_at_ms=now_ms(),
        ended_at_ms=None,
        expires_at_ms=None,
    )


def progress_view(progress: Progress) -> dict[str, int]:
    """How far a job is."""
    return {
        "total": progress.total,
        "completed": progress.completed,
        "failed": progress.failed,
        "pending": progress.pending,
    }


def job_view(job: Job) -> dict[str, Any]:
    """What every kind of job shows."""
    view: dict[str, Any] = {
        "id": job.id,
        "type": job.kind,
        "status": job.status,
        "url": job.url,
        "createdAt": iso(moment_of(job.created_at_ms)),
    }
    if job.ended_at_ms is not None:
        view["completedAt"] = iso(moment_of(job.ended_at_ms))
    if job.expires_at_ms is not None:
        view["expiresAt"] = iso(moment_of(job.expires_at_ms))
    if job.error is not None:
        view["error"] = job.error
    return view
