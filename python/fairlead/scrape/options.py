"""What a caller may ask of a scrape, field by field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

Selector = Annotated[StrictStr, Field(min_length=1, max_length=1000)]
Url = Annotated[
    StrictStr, Field(min_length=1, max_length=2048, json_schema_extra={"format": "uri"})
]


class Ask(BaseModel):
    """A body of the scraping API: camelCase names, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class Action(Ask):
    """One step in the browser before the page is read."""

    type: Literal["click", "scroll", "wait", "fill", "select"]
    selector: Selector | None = None
    value: Annotated[StrictStr, Field(max_length=10_000)] | None = None
    position: StrictInt | StrictFloat | None = None
    timeout: Annotated[StrictInt | StrictFloat, Field(ge=0, le=30_000)] | None = Field(
        None, description="Milliseconds."
    )
    optional: StrictBool = Field(False, description="Whether a step that fails is passed over.")


class CommonOptions(Ask):
    """Options of every call that reads a page."""

    wait_for_selector: Selector | None = None
    wait_for_timeout: Annotated[StrictInt, Field(gt=0, le=30_000)] | None = Field(
        None, description="Milliseconds."
    )
    actions: list[Action] = Field(default=[], max_length=50)
    skip_cache: StrictBool = False
    cache_ttl: Annotated[StrictInt, Field(gt=0, le=30 * 86_400)] | None = Field(
        None, description="Seconds; 3600 where it is not sent."
    )
    extractor_format: Literal["html", "markdown", "text"] | None = None

    @property
    def needs_browser(self) -> bool:
        """Whether plain HTTP cannot do what is asked."""
        return bool(self.actions or self.wait_for_selector or self.wait_for_timeout)


class ScrapeOptions(CommonOptions):
    """Options of a scrape."""

    only_main_content: StrictBool = True
    fit_markdown: StrictBool = False
    use_browser: StrictBool = False
    stealth_mode: StrictBool = Field(
        False, description="A browser's usual headers and languages; nothing that evades detection."
    )
    skip_tls_verification: StrictBool = False
    extraction_options: dict[str, Any] | None = Field(
        None,
        description="`links`, `tables`, `code`, `images` (booleans) ask for these lists in `formats`.",
    )

    @property
    def needs_browser(self) -> bool:
        """Whether plain HTTP cannot do what is asked."""
        return self.use_browser or super().needs_browser


class SummarizeOptions(CommonOptions):
    """Options of a summary."""

    temperature: Annotated[StrictFloat | StrictInt, Field(ge=0, le=2)] | None = None
    model: Annotated[StrictStr, Field(min_length=1, max_length=300)] | None = None


class ExtractOptions(SummarizeOptions):
    """Options of an extraction by schema."""

    max_tokens: Annotated[StrictInt, Field(gt=0, le=1_000_000)] | None = None
    instructions: Annotated[StrictStr, Field(max_length=20_000)] | None = None


class ScrapeAsk(Ask):
    url: Url
    options: ScrapeOptions = ScrapeOptions()


class ExtractAsk(Ask):
    url: Url
    schema_: dict[str, Any] = Field(alias="schema")
    options: ExtractOptions = ExtractOptions()


class SummarizeAsk(Ask):
    url: Url
    max_length: Annotated[StrictInt, Field(gt=0, le=20_000)] = Field(500, description="Words.")
    options: SummarizeOptions = SummarizeOptions()


class CacheAsk(Ask):
    url: Url | None = None


Count = Annotated[StrictInt, Field(gt=0)]
Depth = Annotated[StrictInt, Field(ge=0)]
Pattern = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Patterns = Annotated[list[Pattern], Field(max_length=25)]


class CrawlOptions(Ask):
    max_concurrent_crawlers: Count | None = None
    browser_pool_size: Count | None = None


class CrawlAsk(Ask):
    """`limit` and `maxUrls` are two names of one bound, `maxDepth` and `maxDiscoveryDepth` too: the
    lower counts. Bounds above ours are lowered to ours.
    """

    url: Url
    limit: Count | None = None
    max_urls: Count | None = None
    max_depth: Depth | None = None
    max_discovery_depth: Depth | None = None
    webhook: Url | None = None
    include_paths: Patterns = []
    exclude_paths: Patterns = []
    include_patterns: Patterns = []
    exclude_patterns: Patterns = []
    allow_subdomains: StrictBool = False
    skip_sitemaps: StrictBool = True
    crawl_options: CrawlOptions = CrawlOptions()
    scrape_options: ScrapeOptions = ScrapeOptions()

    @property
    def pages_max(self) -> int:
        """How many pages are fetched at most."""
        said = [n for n in (self.limit, self.max_urls) if n is not None]
        return min([*said, LIMIT_MAX]) if said else LIMIT_DEFAULT

    @property
    def depth_max(self) -> int:
        """How many links away from the start a page may be."""
        said = [n for n in (self.max_depth, self.max_discovery_depth) if n is not None]
        return min([*said, DEPTH_MAX]) if said else DEPTH_DEFAULT

    @property
    def width(self) -> int:
        """How many pages are fetched at once."""
        return min(self.crawl_options.max_concurrent_crawlers or WIDTH_DEFAULT, WIDTH_MAX)


LIMIT_DEFAULT, LIMIT_MAX = 100, 10_000
DEPTH_DEFAULT, DEPTH_MAX = 5, 10
WIDTH_DEFAULT, WIDTH_MAX = 5, 20


class EstimateAsk(Ask):
    url: Url
    limit: Count | None = None
    max_depth: Depth | None = None
    scrape_options: ScrapeOptions = ScrapeOptions()


class BatchAsk(Ask):
    urls: Annotated[list[Url], Field(min_length=1, max_length=1000)]
    concurrency: Annotated[StrictInt, Field(ge=1, le=20)] = 5
    webhook: Url | None = None
    options: ScrapeOptions = ScrapeOptions()


class MapAsk(Ask):
    url: Url
    max_urls: Annotated[StrictInt, Field(ge=1, le=30_000)] = 5000
    include_subdomains: StrictBool = True
    search_query: Annotated[StrictStr, Field(min_length=1, max_length=500)] | None = None
    skip_sitemaps: StrictBool = False
    sitemaps_only: StrictBool = False
    timeout_ms: Annotated[StrictInt, Field(ge=1000, le=50_000)] = 30_000
    include_patterns: Patterns = []
    exclude_patterns: Patterns = []


class SearchAsk(Ask):
    query: Annotated[StrictStr, Field(min_length=1, max_length=500)]
    limit: Annotated[StrictInt, Field(ge=1, le=50)] = 10
    lang: Annotated[StrictStr, Field(pattern=r"^[A-Za-z]{2}(-[A-Za-z]{2})?$")] | None = None
    scrape_results: StrictBool = False
    scrape_options: ScrapeOptions = ScrapeOptions()


class EndpointAsk(Ask):
    """A scrape, or with `schema` an extraction, under a name. `{name}` in `url` is a parameter."""

    slug: Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    url: Annotated[StrictStr, Field(min_length=1, max_length=2048)]
    params: dict[
        Annotated[StrictStr, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}$")],
        Annotated[StrictStr, Field(max_length=500)] | None,
    ] = Field({}, max_length=20, description="Names and defaults; null makes a parameter required.")
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    options: dict[str, Any] = {}
