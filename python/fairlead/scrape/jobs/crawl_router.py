"""Starting a crawl, and what one would come to."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from fairlead.errors import Forbidden
from fairlead.scrape.address import check_url
from fairlead.scrape.jobs.estimate import estimate_crawl
from fairlead.scrape.jobs.frontier import patterns_of
from fairlead.scrape.jobs.start import new_job, start_job
from fairlead.scrape.jobs.table import FrontierEntry
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.jobs import CrawlRequest, EstimateRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.post("/crawl", summary="Crawl a site in the background")
async def crawl(
    body: CrawlRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """The URL for polling; with a webhook also the secret that signs its events."""
    scraper = scraper_of(services)
    url = check_url(body.url, scraper.egress)
    if body.ignore_robots_txt:
        settings = await scraper.settings(fresh=True)
        if settings.scrape_robots and not settings.scrape_may_ignore_robots:
            raise Forbidden(
                "ignoreRobotsTxt is not allowed here: an operator allows it with the setting scrapeMayIgnoreRobots.",
                param="ignoreRobotsTxt",
            )
    await scraper.check_patterns(patterns_of(body), owner)
    await scraper.check_model_forms(body.page_options, owner)
    job = new_job("crawl", owner, url, body, body.pages_max)
    started = await start_job(services, job, [FrontierEntry(0, 0, url)], base, body.webhook)
    return {**started, **body.lowered}


@router.post("/crawl/estimate", summary="Estimate a crawl")
async def estimate(
    body: EstimateRequest,
    services: ServicesDep,
    owner: OwnerDep,
) -> dict[str, Any]:
    """Uses `maxDepth`, the start page's links and the site's cached map, or else its sitemaps. `sampled` names
    the sources that were read within ten seconds.
    """
    url = check_url(body.url, scraper_of(services).egress)
    return {
        "success": True,
        "estimate": await estimate_crawl(services, owner, url, body),
        **body.lowered,
    }
