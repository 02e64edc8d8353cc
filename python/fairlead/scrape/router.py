"""Routes of one page: scrape, read, extract, summarize; the cache of pages and the day's usage."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Response
from starlette.requests import Request

from fairlead.moment import now_ms
from fairlead.scrape.address import check_url
from fairlead.scrape.cache import forget_cached
from fairlead.scrape.calls import answer_deadline, extract_page, read_page
from fairlead.scrape.calls import summarize_page as summary_of_page
from fairlead.scrape.jobs.start import new_job, start_job
from fairlead.scrape.jobs.table import FrontierEntry, find_job, list_pages
from fairlead.scrape.jobs.view import job_view
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.limits.quota import daily_calls_of, day_of
from fairlead.scrape.requests.page import (
    CacheRequest,
    ExtractRequest,
    ScrapeOptions,
    ScrapeRequest,
    SummarizeRequest,
)
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.post("/scrape", summary="Scrape a page")
async def scrape(body: ScrapeRequest, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """The page in the form of `options.extractorFormat`. A page that was not read is 400."""
    url = check_url(body.url, scraper_of(services).egress)
    scraped = await read_page(services, url, body.options, owner)
    return {"success": True, **scraped.document, **body.lowered}


@router.post("/scrape/async", summary="Scrape a page in the background")
async def scrape_async(
    body: ScrapeRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """A job's id and where to ask for it."""
    url = check_url(body.url, scraper_of(services).egress)
    await scraper_of(services).check_model_forms(body.options, owner)
    job = new_job("scrape", owner, url, body, 1)
    started = await start_job(services, job, [FrontierEntry(0, 0, url)], base)
    return {**started, **body.lowered}


@router.get(
    "/scrape/job/{job_id}",
    summary="A background scrape and its result",
    response_model=dict[str, Any],
)
async def scrape_job(job_id: str, services: ServicesDep, owner: OwnerDep) -> Response:
    """`status` is pending, processing, completed or failed; a completed scrape has `result`."""

    def read_job(con: Connection) -> dict[str, Any]:
        job = find_job(con, job_id, "scrape", owner)
        view: dict[str, Any] = {"success": True, **job_view(job)}
        for page in list_pages(con, job.id, 0, 1):
            if page.document is not None:
                view["result"] = orjson.Fragment(page.document)
        return view

    view = await services.state.read(read_job)
    return Response(orjson.dumps(view), media_type="application/json")


@router.get("/reader", response_model=None, summary="A page as markdown")
async def reader(
    url: str, services: ServicesDep, owner: OwnerDep, request: Request
) -> Response | dict[str, Any]:
    """The main content; bare where `Accept` asks for text/markdown or text/plain, else the document of a scrape."""
    options = ScrapeOptions.model_validate({"extractorFormat": "markdown"})
    scraped = await read_page(services, check_url(url, scraper_of(services).egress), options, owner)
    accepted = request.headers.get("accept", "")
    if "text/markdown" in accepted or accepted.startswith("text/plain"):
        return Response(
            scraped.document["content"] + "\n",
            media_type="text/markdown",
            headers={"vary": "accept", "x-content-type-options": "nosniff"},
        )
    return {"success": True, **scraped.document}


@router.post("/extract-schema", summary="Extract data of a JSON Schema from a page")
async def extract_schema(
    body: ExtractRequest, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """The page's data, valid against `schema`, by the model of `options.model` or `scrapeModel`."""
    await scraper_of(services).schema(body.schema_, owner).check()
    async with answer_deadline():
        return {**await extract_page(services, body, owner), **body.lowered}


@router.post("/summarize", summary="Summarize a page")
async def summarize_page(
    body: SummarizeRequest, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """At most `maxLength` words, by the model of `options.model` or the setting `scrapeModel`."""
    async with answer_deadline():
        return {**await summary_of_page(services, body, owner), **body.lowered}


@router.delete("/cache", summary="Delete scraped pages: one address, or all of the caller's")
async def forget(
    services: ServicesDep,
    owner: OwnerDep,
    body: Annotated[CacheRequest | None, Body()] = None,
) -> dict[str, Any]:
    """Drops the caller's own copies."""
    url = check_url(body.url, scraper_of(services).egress) if body and body.url else None
    count = await services.state.database.write(lambda con: forget_cached(con, owner, url))
    message = f"Cache invalidated for URL: {url}" if url else "Cache cleared"
    return {"success": True, "message": message, "count": count}


@router.get("/usage", summary="How many calls the key has made today, and has left")
async def usage(services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Calls that read pages or start something count; GET and DELETE of stored things do not. The day is that of
    UTC.
    """
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
