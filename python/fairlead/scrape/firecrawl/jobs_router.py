"""Firecrawl's crawls and batches, which are jobs of the scraping API."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from fairlead.errors import InvalidRequest
from fairlead.moment import iso, moment_of
from fairlead.scrape.address import check_url
from fairlead.scrape.firecrawl.document import firecrawl_document
from fairlead.scrape.firecrawl.options import translate, validated, warning_of
from fairlead.scrape.firecrawl.requests import BatchBody, CrawlBody, PageOptions, Webhook
from fairlead.scrape.jobs.batch_router import batch as start_batch
from fairlead.scrape.jobs.crawl_router import crawl as start_crawl
from fairlead.scrape.jobs.pages_router import PageLimit, PagesRoutes, Skip
from fairlead.scrape.jobs.table import (
    Job,
    Page,
    PageSelection,
    Progress,
    find_job,
    job_with_options,
    last_number,
    list_failures,
    list_jobs,
    list_pages,
    progress_of,
)
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.jobs import DEPTH_MAX, LIMIT_MAX, BatchRequest, CrawlRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

ACTIVE_MAX: Final = 100
BATCH_WIDTH_MAX: Final = 20
PATHS: Final = {"crawl": "/v2/crawl", "batch": "/v2/batch/scrape"}
_STATUS: Final = {
    "pending": "scraping",
    "processing": "scraping",
    "completed_with_errors": "completed",
}

starts = APIRouter(prefix="/v2", tags=["firecrawl"])


@starts.post("/crawl", summary="Crawl a site in the background (Firecrawl)", name="firecrawl_crawl")
async def crawl(
    body: CrawlBody, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """The crawl's id. Without `limit` it reads 10,000 pages at most."""
    pages = translate(body.scrape_options or PageOptions(), "scrapeOptions.")
    webhook, passed_over = _webhook(body.webhook)
    fields: dict[str, Any] = {
        "url": body.url,
        "limit": body.limit or LIMIT_MAX,
        "maxDiscoveryDepth": DEPTH_MAX
        if body.max_discovery_depth is None
        else body.max_discovery_depth,
        "includePaths": body.include_paths or [],
        "excludePaths": body.exclude_paths or [],
        "skipSitemaps": body.sitemap == "skip",
        "sitemapsOnly": body.sitemap == "only",
        "allowSubdomains": bool(body.allow_subdomains),
        "regexOnFullURL": bool(body.regex_on_full_url),
        "crawlEntireDomain": bool(body.crawl_entire_domain),
        "allowExternalContentLinks": bool(body.allow_external_links),
        "ignoreRobotsTxt": bool(body.ignore_robots_txt),
        "ignoreQueryParameters": bool(body.ignore_query_parameters),
        "delay": body.delay,
        "crawlOptions": {"maxConcurrentCrawlers": body.max_concurrency},
        "webhook": webhook,
        "scrapeOptions": pages.options.model_dump(by_alias=True),
    }
    started = await start_crawl(validated(CrawlRequest, fields), services, owner, base)
    return _started("crawl", started, base, [*body.unknown, *passed_over, *pages.passed_over])


@starts.post(
    "/batch/scrape",
    summary="Scrape a list of pages in the background (Firecrawl)",
    name="firecrawl_batch",
)
async def batch(
    body: BatchBody, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """The batch's id. Addresses that are refused are in `invalidURLs`, unless `ignoreInvalidURLs` is false."""
    pages = translate(body)
    webhook, passed_over = _webhook(body.webhook)
    egress = scraper_of(services).egress
    urls: list[str] = []
    invalid: list[str] = []
    for number, url in enumerate(body.urls):
        try:
            urls.append(check_url(url, egress, f"urls[{number}]"))
        except InvalidRequest:
            if body.ignore_invalid_urls is False:
                raise
            invalid.append(url)
    if not urls:
        raise InvalidRequest("urls has no address that can be read.", param="urls")
    fields: dict[str, Any] = {"urls": urls, "webhook": webhook}
    if body.max_concurrency is not None:
        fields["concurrency"] = min(body.max_concurrency, BATCH_WIDTH_MAX)
    request = validated(BatchRequest, fields).model_copy(update={"options": pages.options})
    started = await start_batch(request, services, owner, base)
    answer = _started("batch", started, base, [*passed_over, *pages.passed_over])
    return {**answer, "invalidURLs": invalid} if invalid else answer


def _webhook(sent: str | Webhook | None) -> tuple[str | None, list[str]]:
    """The webhook's address, and the names of its options, which are not served."""
    if not isinstance(sent, Webhook):
        return sent, []
    return sent.url, [f"webhook.{name}" for name in sent.unknown]


def _started(
    kind: str, started: dict[str, Any], base: str, passed_over: list[str]
) -> dict[str, Any]:
    job_id = started["id"]
    answer = {"success": True, "id": job_id, "url": f"{base}{PATHS[kind]}/{job_id}"}
    if "webhookSecret" in started:
        answer["webhookSecret"] = started["webhookSecret"]
    return {**answer, **warning_of(passed_over, started.get("lowered", ()))}


class JobRoutes:
    """Handlers for jobs of one kind."""

    def __init__(self, kind: Literal["crawl", "batch"]) -> None:
        self._kind = kind
        self._pages = PagesRoutes(kind, kind)

    async def show(
        self,
        job_id: str,
        services: ServicesDep,
        owner: OwnerDep,
        base: BaseDep,
        *,
        skip: Skip = 0,
        limit: PageLimit = 100,
    ) -> Response:
        def read_pages(con: Connection) -> tuple[Job, Progress, list[Page], int]:
            job = find_job(con, job_id, self._kind, owner)
            pages = list_pages(con, job.id, skip, limit, PageSelection("completed"))
            return job, progress_of(con, job), pages, last_number(con, job.id, "completed")

        job, progress, pages, last = await services.state.read(read_pages)
        shown = pages[-1].number if pages else skip
        # Clients follow `next` without a pause, so it is sent only while more pages have been read.
        next_url = f"{base}{PATHS[self._kind]}/{job.id}?skip={shown}&limit={limit}"
        view: dict[str, Any] = {
            "success": True,
            "status": _STATUS.get(job.status, job.status),
            "total": progress.total,
            "completed": progress.completed,
            "creditsUsed": progress.completed,
            "next": next_url if shown < last else None,
        }
        if job.expires_at_ms is not None:
            view["expiresAt"] = iso(moment_of(job.expires_at_ms))
        if job.error is not None:
            view["error"] = job.error
        text = await asyncio.to_thread(_with_documents, view, pages)
        return Response(text, media_type="application/json")

    async def list_errors(
        self, job_id: str, services: ServicesDep, owner: OwnerDep
    ) -> dict[str, Any]:
        def read_failures(con: Connection) -> list[Page]:
            return list_failures(con, find_job(con, job_id, self._kind, owner).id, LIMIT_MAX)

        failed = await services.state.read(read_failures)
        return {
            "success": True,
            "errors": [
                {
                    "id": str(page.number),
                    "timestamp": iso(moment_of(page.at_ms)),
                    "url": page.url,
                    "code": page.code,
                    "error": page.error,
                }
                for page in failed
                if page.code != "robots"
            ],
            "robotsBlocked": [page.url for page in failed if page.code == "robots"],
        }

    async def cancel(self, job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
        answer = await self._pages.cancel(job_id, services, owner)
        return {**answer, "status": _STATUS.get(answer["status"], answer["status"])}

    def router(self) -> APIRouter:
        """The routes of one job."""
        router, kind = APIRouter(prefix=PATHS[self._kind], tags=["firecrawl"]), self._kind
        router.add_api_route(
            "/{job_id}",
            self.show,
            methods=["GET"],
            response_model=dict[str, Any],
            name=f"firecrawl_{kind}_status",
            summary=f"A {kind}, its progress and its pages (Firecrawl)",
            description="`data` has the pages that were read; `next` is the address of further ones.",
        )
        router.add_api_route(
            "/{job_id}/errors",
            self.list_errors,
            methods=["GET"],
            name=f"firecrawl_{kind}_errors",
            summary=f"The pages of a {kind} that failed (Firecrawl)",
            description="Pages that robots.txt disallows are in `robotsBlocked`.",
        )
        router.add_api_route(
            "/{job_id}",
            self.cancel,
            methods=["DELETE"],
            name=f"cancel_firecrawl_{kind}",
            summary=f"Cancel a {kind} (Firecrawl)",
            description=f"Ends it now; the pages that were read stay. A {kind} that has ended stays as it ended.",
        )
        return router


def _with_documents(view: dict[str, Any], pages: list[Page]) -> bytes:
    documents = [orjson.loads(page.document or "{}") for page in pages]
    return orjson.dumps({**view, "data": [firecrawl_document(each) for each in documents]})


active = APIRouter(prefix="/v2", tags=["firecrawl"])


@active.get(
    "/crawl/active", summary="List crawls that have not ended (Firecrawl)", name="firecrawl_active"
)
async def list_active(services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """The caller's crawls in progress, newest first, at most 100."""

    def read_active(con: Connection) -> list[Job]:
        jobs = list_jobs(con, "crawl", owner, ACTIVE_MAX, only_active=True)
        return [job_with_options(con, job) for job in jobs]

    jobs = await services.state.read(read_active)
    return {
        "success": True,
        "crawls": [
            {
                "id": job.id,
                "teamId": owner,
                "url": job.url,
                "created_at": iso(moment_of(job.created_at_ms)),
                "options": orjson.loads(job.options),
            }
            for job in jobs
        ],
    }


# `/crawl/active` first: `/crawl/{job_id}` would take `active` for an id.
ROUTERS = (starts, active, JobRoutes("crawl").router(), JobRoutes("batch").router())
