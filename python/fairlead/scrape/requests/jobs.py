"""Request bodies of jobs: crawl, batch, llms.txt, extraction from many pages, agent."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from fairlead.scrape.requests.fields import (
    Count,
    Depth,
    ModelName,
    Patterns,
    Prompt,
    RequestBody,
    Retries,
    Url,
    lowered_to,
    one_of,
)
from fairlead.scrape.requests.page import BrowserUse, ScrapeOptions, SiteScrapeOptions

LIMIT_DEFAULT, LIMIT_MAX = 100, 10_000
DEPTH_DEFAULT, DEPTH_MAX = 5, 10
WIDTH_DEFAULT, WIDTH_MAX = 5, 20
JOB_MAX_MS = 6 * 3_600_000

Strategy = Literal["bfs", "dfs", "best_first"]
Keyword = Annotated[StrictStr, Field(min_length=1, max_length=100)]
PagesMax = Annotated[Count, lowered_to(LIMIT_MAX)]
DepthMax = Annotated[Depth, lowered_to(DEPTH_MAX)]


class CrawlOptions(RequestBody):
    max_concurrent_crawlers: Annotated[Count, lowered_to(WIDTH_MAX)] | None = None
    browser_pool_size: Count | None = None


class CrawlRequest(RequestBody):
    """A crawl. `limit` and `maxUrls` are two names of one bound, `maxDepth` and `maxDiscoveryDepth` too: the
    lower counts. Bounds above ours are lowered to ours.
    """

    url: Url
    limit: PagesMax | None = None
    max_urls: PagesMax | None = None
    max_depth: DepthMax | None = None
    max_discovery_depth: DepthMax | None = None
    webhook: Url | None = None
    include_paths: Patterns = Field(default=[])
    exclude_paths: Patterns = Field(default=[])
    include_patterns: Patterns = Field(default=[])
    exclude_patterns: Patterns = Field(default=[])
    allow_subdomains: StrictBool = False
    crawl_entire_domain: StrictBool = Field(
        False, description="Whether pages beside and above the path of `url` are read too."
    )
    allow_backward_crawling: StrictBool = Field(
        False, description="Another name of crawlEntireDomain."
    )
    allow_external_content_links: StrictBool = Field(
        False,
        description="Whether pages of other hosts are read that the site links to. Their links are not followed.",
    )
    strategy: Strategy = Field(
        "bfs",
        description="Which page is next: the one nearest to the start (`bfs`), the deepest (`dfs`), or the one whose "
        "address has most of `keywords` (`best_first`).",
    )
    keywords: Annotated[list[Keyword], Field(max_length=50)] = Field(default=[])
    use_map_discovery: StrictBool = Field(
        False,
        description="Whether the crawl also starts from the pages that a map of the site finds.",
    )
    timeout_ms: Annotated[StrictInt, Field(ge=1000), lowered_to(JOB_MAX_MS)] | None = Field(
        None,
        description="Milliseconds for the whole crawl, which ends then with the pages that it has.",
    )
    ignore_robots_txt: StrictBool = Field(
        False, description="Allowed where the setting `scrapeMayIgnoreRobots` is on."
    )
    delay: Annotated[StrictInt | StrictFloat, Field(ge=0), lowered_to(60)] | None = Field(
        None, description="Seconds between two pages, which are then read one at a time."
    )
    ignore_query_parameters: StrictBool = Field(
        False, description="Whether addresses that differ only in their query are one page."
    )
    skip_sitemaps: StrictBool = True
    sitemaps_only: StrictBool = Field(
        False,
        description="Whether only pages are read that the sitemaps name, and no links followed.",
    )
    use_browser: BrowserUse = Field(None, description="As scrapeOptions.useBrowser.")
    regex_on_full_url: StrictBool = Field(
        False,
        alias="regexOnFullURL",
        description="Whether includePaths and excludePaths look at the whole address too.",
    )
    max_retries: Retries = Field(
        1, description="Retries of a page whose host was busy or did not answer."
    )
    crawl_options: CrawlOptions = CrawlOptions()
    scrape_options: SiteScrapeOptions = SiteScrapeOptions()

    @property
    def pages_max(self) -> int:
        """How many pages are fetched at most."""
        bounds = [n for n in (self.limit, self.max_urls) if n is not None]
        return min([*bounds, LIMIT_MAX]) if bounds else LIMIT_DEFAULT

    @property
    def depth_max(self) -> int:
        """How many links away from the start a page may be."""
        bounds = [n for n in (self.max_depth, self.max_discovery_depth) if n is not None]
        return min([*bounds, DEPTH_MAX]) if bounds else DEPTH_DEFAULT

    @model_validator(mode="after")
    def _has_keywords(self) -> Self:
        if self.strategy == "best_first" and not self.keywords:
            raise PydanticCustomError("no_valid_fields", "The strategy best_first needs keywords.")
        return self

    @property
    def reads_whole_host(self) -> bool:
        """Whether pages that are not below the path of `url` are of the site."""
        return self.crawl_entire_domain or self.allow_backward_crawling

    @property
    def reads_sitemaps(self) -> bool:
        """Whether pages are taken from the sitemaps."""
        return self.sitemaps_only or not self.skip_sitemaps

    @property
    def page_options(self) -> ScrapeOptions:
        """How each page is read."""
        if not self.use_browser:
            return self.scrape_options
        return self.scrape_options.model_copy(update={"use_browser": self.use_browser})

    @property
    def width(self) -> int:
        """How many pages are fetched at once; by the browser, no more than its pool has."""
        if self.delay:
            return 1
        width = min(self.crawl_options.max_concurrent_crawlers or WIDTH_DEFAULT, WIDTH_MAX)
        if self.page_options.needs_browser and self.crawl_options.browser_pool_size is not None:
            return min(width, self.crawl_options.browser_pool_size)
        return width


class EstimateRequest(RequestBody):
    """An estimate of a crawl. Bounds above those of crawls are lowered to them."""

    url: Url
    limit: PagesMax | None = None
    max_depth: DepthMax | None = None
    scrape_options: SiteScrapeOptions = SiteScrapeOptions()

    @property
    def pages_max(self) -> int:
        """How many pages such a crawl fetches at most."""
        return LIMIT_DEFAULT if self.limit is None else min(self.limit, LIMIT_MAX)

    @property
    def depth_max(self) -> int:
        """How many links away from the start its pages may be."""
        return DEPTH_DEFAULT if self.max_depth is None else min(self.max_depth, DEPTH_MAX)


class BatchRequest(RequestBody):
    urls: Annotated[list[Url], Field(min_length=1, max_length=1000)]
    concurrency: Annotated[StrictInt, Field(ge=1), lowered_to(WIDTH_MAX)] = WIDTH_DEFAULT
    webhook: Url | None = None
    timeout: Annotated[StrictInt, Field(ge=10_000, le=300_000)] | None = Field(
        None, description="Milliseconds that one page may take, with its retries."
    )
    fail_fast: StrictBool = Field(
        False, description="Whether the first page that fails ends the batch."
    )
    max_retries: Retries = Field(
        1, description="Retries of a page whose host was busy or did not answer."
    )
    options: ScrapeOptions = ScrapeOptions()


class LlmsTxtRequest(RequestBody):
    url: Url
    max_urls: Annotated[StrictInt, Field(ge=1), lowered_to(500)] = 50
    include_full_text: StrictBool = False

    def as_crawl(self) -> CrawlRequest:
        """The crawl that finds the pages: what the sitemaps name, and what is linked."""
        return CrawlRequest.model_validate(
            {
                "url": self.url,
                "limit": self.max_urls,
                "maxDepth": 3,
                "skipSitemaps": False,
                "crawlEntireDomain": True,
                "scrapeOptions": {"extractorFormat": "markdown", "fitMarkdown": True},
            }
        )


EXTRACT_PAGES_MAX = 1000


class ExtractJobRequest(RequestBody):
    """An extraction from many pages: those of `urls`, or those that are found from `url`."""

    urls: Annotated[list[Url], Field(min_length=1, max_length=EXTRACT_PAGES_MAX)] | None = None
    url: Url | None = None
    prompt: Prompt | None = Field(None, description="What to look for.")
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    limit: Count | None = Field(
        None, description="Pages at most: of `urls` all where it is not sent, from `url` 20."
    )
    model: ModelName | None = None
    scrape_options: ScrapeOptions = ScrapeOptions()

    @model_validator(mode="after")
    def _has_pages_and_a_question(self) -> Self:
        if self.prompt is None and self.schema_ is None:
            raise PydanticCustomError("no_valid_fields", "Send prompt, schema or both.")
        return one_of(self, "urls", "url")

    @property
    def pages_max(self) -> int:
        """How many pages are read at most."""
        most = len(self.urls) if self.urls is not None else EXTRACT_PAGES_MAX
        return min(self.limit or (most if self.urls is not None else 20), most)

    @property
    def page_options(self) -> ScrapeOptions:
        """How a page is read for a model, which is shown the content alone."""
        form = self.scrape_options.extractor_format or "markdown"
        return self.scrape_options.model_copy(
            update={
                "extractor_format": form,
                "formats": [],
                "extraction_options": None,
                "screenshot": None,
            }
        )

    def as_crawl(self) -> CrawlRequest | None:
        """The crawl that finds the pages, where they are not named."""
        if self.url is None:
            return None
        body = {
            "url": self.url,
            "limit": self.pages_max,
            "maxDepth": 3,
            "skipSitemaps": False,
            "crawlEntireDomain": True,
        }
        return CrawlRequest.model_validate(body).model_copy(
            update={"scrape_options": self.page_options}
        )


class AgentRequest(RequestBody):
    """An agent: its goal, and the address where it begins."""

    url: Url
    prompt: Prompt = Field(description="The goal.")
    schema_: dict[str, Any] | None = Field(
        None, alias="schema", description="What `data` of the result fits."
    )
    max_steps: Annotated[StrictInt, Field(ge=1), lowered_to(20)] = 10
    allow_other_sites: StrictBool = Field(
        False, description="Whether it may leave the host of `url`."
    )
    model: ModelName | None = None
