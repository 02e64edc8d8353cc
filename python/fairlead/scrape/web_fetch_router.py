"""`POST /v1/web/fetch`: a web page for callers of models, read as in the scraping API."""

from __future__ import annotations

from collections import deque
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from fairlead.errors import InvalidRequest
from fairlead.net.url import split_url
from fairlead.scrape.address import check_url
from fairlead.scrape.calls import answer_deadline, read_page
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.requests.fields import Selector, Url
from fairlead.scrape.requests.page import Format as ScrapeFormat
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.scraper import Scraper, ScrapeResult, scraper_of
from fairlead.store.services import ServicesDep

router = APIRouter(tags=["web"])

PAGES_MAX: Final = 10
"""Pages of one answer, the first included."""

Format = Literal["markdown", "html", "links", "screenshot"]


class WebFetch(BaseModel):
    """Which page is wanted, and as what."""

    model_config = ConfigDict(extra="forbid")

    url: Url
    format: Format = Field(
        "markdown",
        description="The main content as `markdown` or `html`, the `links` of the page, or a `screenshot` of it.",
    )
    depth: Annotated[StrictInt, Field(ge=0, le=2)] = Field(
        0,
        description="How many links away pages of the same host are read as well; ten pages at most.",
    )
    wait_for_selector: Selector | None = Field(
        None, description="An element that must be on the page before it is read, by a browser."
    )
    include_metadata: StrictBool = Field(
        True, description="Whether the answer includes the page's metadata."
    )


@router.post("/v1/web/fetch", summary="Fetch a page of the web")
async def fetch(body: WebFetch, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """The page as `content` (markdown, HTML), `links` or `screenshot` (a data URL). Pages for `depth` are in
    `pages`; a page that could not be read has an `error`. The rules of the scraping API apply: private
    addresses, robots.txt, the delay between requests to a host, limits of calls.
    """
    scraper = scraper_of(services)
    options = _options(body)
    first = await read_page(services, check_url(body.url, scraper.egress), options, owner)
    view = {"object": "web.page", **_page(first, body)}
    if body.depth:
        async with answer_deadline():
            view["pages"] = await _linked(scraper, first, body, owner)
    return view


def _options(body: WebFetch) -> ScrapeOptions:
    formats: list[ScrapeFormat] = ["screenshot"] if body.format == "screenshot" else []
    if body.depth or body.format == "links":
        formats.append("links")
    form: Literal["html", "markdown"] = "html" if body.format == "html" else "markdown"
    return ScrapeOptions(
        extractorFormat=form, waitForSelector=body.wait_for_selector, formats=formats
    )


async def _linked(
    scraper: Scraper, first: ScrapeResult, body: WebFetch, owner: str
) -> list[dict[str, Any]]:
    """The pages of the same host that are at most `depth` links away, nearest first."""
    host = split_url(first.url).netloc
    seen = {_bare(first.url)}
    waiting = deque((link, 1) for link in _links(first))
    pages: list[dict[str, Any]] = []
    while waiting and len(pages) < PAGES_MAX - 1:
        url, depth = waiting.popleft()
        if _bare(url) in seen or split_url(url).netloc != host:
            continue
        seen.add(_bare(url))
        try:
            page = await scraper.scrape(check_url(url, scraper.egress), _options(body), owner)
        except (FetchFailed, InvalidRequest) as failure:
            reason = failure.reason if isinstance(failure, FetchFailed) else failure.message
            pages.append({"url": url, "error": reason})
            continue
        pages.append(_page(page, body))
        if depth < body.depth:
            waiting.extend((link, depth + 1) for link in _links(page))
    return pages


def _page(read: ScrapeResult, body: WebFetch) -> dict[str, Any]:
    document = read.document
    view: dict[str, Any] = {"url": read.url, "title": document["title"], "format": body.format}
    match body.format:
        case "links":
            view["links"] = document.get("formats", {}).get("links", [])
        case "screenshot":
            view["screenshot"] = document["formats"]["screenshot"]
        case _:
            view["content"] = document["content"]
    if body.include_metadata:
        view["metadata"] = document["metadata"]
    return view


def _links(read: ScrapeResult) -> list[str]:
    return [link["url"] for link in read.document.get("formats", {}).get("links", [])]


def _bare(url: str) -> str:
    return url.partition("#")[0]
