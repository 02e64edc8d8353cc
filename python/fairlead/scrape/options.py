"""What a caller may ask of a scrape, field by field."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from fairlead.scrape.saved.template import Parameters, Template

Selector = Annotated[StrictStr, Field(min_length=1, max_length=1000)]
Url = Annotated[
    StrictStr, Field(min_length=1, max_length=2048, json_schema_extra={"format": "uri"})
]
ModelName = Annotated[StrictStr, Field(min_length=1, max_length=300)]
SessionId = Annotated[
    Annotated[StrictStr, Field(min_length=1, max_length=64)] | None,
    Field(description="A browser session of yours, in whose tab the page is read."),
]

A = TypeVar("A", bound=BaseModel)


def _lowered_to(most: int) -> AfterValidator:
    """For a bound that callers may not know: what is above it counts as it."""

    def lower(number: float) -> float:
        return min(number, most)

    return AfterValidator(lower)


PauseMs = Annotated[StrictInt, Field(gt=0), _lowered_to(30_000)]
StepMs = Annotated[StrictInt | StrictFloat, Field(ge=0), _lowered_to(30_000)]
KeptS = Annotated[StrictInt, Field(gt=0), _lowered_to(30 * 86_400)]


class Ask(BaseModel):
    """A body of the scraping API: camelCase names, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


def one_of(ask: A, first: str, second: str) -> A:
    """The body, if it has one of these fields and not both."""
    if (getattr(ask, first) is None) == (getattr(ask, second) is None):
        raise PydanticCustomError(
            "no_valid_fields",
            "Send either {first} or {second}.",
            {"first": first, "second": second},
        )
    return ask


class Action(Ask):
    """One step in the browser before the page is read."""

    type: Literal["click", "scroll", "wait", "fill", "select"]
    selector: Selector | None = None
    value: Annotated[StrictStr, Field(max_length=10_000)] | None = None
    position: StrictInt | StrictFloat | None = None
    timeout: StepMs | None = Field(
        None, description="Milliseconds; above 30000 it counts as 30000."
    )
    optional: StrictBool = Field(False, description="Whether a step that fails is passed over.")


class Viewport(Ask):
    """Pixels."""

    width: Annotated[StrictInt, Field(ge=200, le=4000)]
    height: Annotated[StrictInt, Field(ge=200, le=4000)]


class SessionAsk(Ask):
    """A new browser session."""

    initial_url: Url | None = None
    user_agent: Annotated[StrictStr, Field(min_length=1, max_length=500)] | None = None
    viewport: Viewport | None = None


class StepOptions(Ask):
    """What a browser waits for and does before a page is read."""

    wait_for_selector: Selector | None = None
    wait_for_timeout: PauseMs | None = Field(
        None, description="Milliseconds; above 30000 it counts as 30000."
    )
    actions: list[Action] = Field(default=[], max_length=50)


class CommonOptions(StepOptions):
    """Options of every call that reads a page."""

    skip_cache: StrictBool = False
    cache_ttl: KeptS | None = Field(
        None, description="Seconds, 30 days at most; 3600 where it is not sent."
    )
    extractor_format: Literal["html", "markdown", "text"] | None = None

    @property
    def needs_browser(self) -> bool:
        """Whether plain HTTP cannot do what is asked."""
        return bool(self.actions or self.wait_for_selector or self.wait_for_timeout)


Format = Literal[
    "markdown",
    "html",
    "rawHtml",
    "text",
    "links",
    "tables",
    "code",
    "images",
    "contacts",
    "screenshot",
    "pdf",
    "mhtml",
    "changeTracking",
]


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
        description="`links`, `tables`, `code`, `images` (booleans) ask for these lists in `formats`, "
        "`screenshot` for a picture and `downloads` for the files that a browser was given.",
    )
    formats: list[Format] = Field(
        default=[], max_length=20, description="What else of the page is told, in `formats`."
    )
    session_id: SessionId = None

    @property
    def needs_browser(self) -> bool:
        """Whether plain HTTP cannot do what is asked."""
        return (
            self.use_browser
            or self.wants_picture
            or self.wants_downloads
            or self.wants_print
            or super().needs_browser
        )

    @property
    def wants_picture(self) -> bool:
        """Whether a picture of the page is asked for."""
        return self.wants("screenshot")

    def wants(self, name: str) -> bool:
        """Whether this is asked for, in whichever way."""
        return name in self.formats or bool((self.extraction_options or {}).get(name))

    @property
    def wants_print(self) -> bool:
        """Whether the page is asked for as a file, which is not kept."""
        return "pdf" in self.formats or "mhtml" in self.formats

    @property
    def wants_downloads(self) -> bool:
        """Whether the files are asked for that the page gives."""
        return bool((self.extraction_options or {}).get("downloads"))


class SiteScrapeOptions(ScrapeOptions):
    """How each page of a site is read: any members, of which those of a scrape are checked and the
    others mean nothing.
    """

    model_config = ConfigDict(extra="ignore")


class DiscoverOptions(StepOptions):
    """Options of a look at a page's calls."""

    stealth_mode: StrictBool = False
    skip_tls_verification: StrictBool = False

    def as_scrape(self) -> ScrapeOptions:
        """The scrape during which the page is watched."""
        return ScrapeOptions.model_validate(
            {**self.model_dump(), "use_browser": True}, by_name=True, by_alias=False
        )


class DiscoverAsk(Ask):
    url: Url
    options: DiscoverOptions = DiscoverOptions()


class SessionAction(Ask):
    """One step in a browser session."""

    type: Literal[
        "navigate",
        "click",
        "type",
        "fill",
        "press",
        "select",
        "scroll",
        "waitForSelector",
        "wait",
        "screenshot",
        "scrape",
        "evaluate",
        "back",
        "forward",
        "reload",
        "content",
    ]
    url: Url | None = None
    selector: Selector | None = None
    value: Annotated[StrictStr, Field(max_length=10_000)] | None = Field(
        None, description="What to type, fill in or select; for `press` the key, such as `Enter`."
    )
    position: StrictInt | StrictFloat | None = None
    timeout: StepMs | None = Field(
        None, description="Milliseconds; above 30000 it counts as 30000."
    )
    script: Annotated[StrictStr, Field(min_length=1, max_length=50_000)] | None = Field(
        None, description="JavaScript of which the value is told; it runs in the page."
    )
    full_page: StrictBool = False
    options: ScrapeOptions = ScrapeOptions()

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        needed = _NEEDED.get(self.type)
        if needed is not None and getattr(self, needed) is None:
            raise PydanticCustomError(
                "no_valid_fields",
                "An action of type {kind} needs {needed}.",
                {"kind": self.type, "needed": needed},
            )
        return self


_NEEDED = {
    "navigate": "url",
    "click": "selector",
    "type": "selector",
    "fill": "selector",
    "press": "value",
    "select": "selector",
    "waitForSelector": "selector",
    "evaluate": "script",
}


class SummarizeOptions(CommonOptions):
    """Options of a summary."""

    temperature: Annotated[StrictFloat | StrictInt, Field(ge=0, le=2)] | None = None
    model: ModelName | None = None


class ExtractOptions(SummarizeOptions):
    """Options of an extraction by schema."""

    max_tokens: Annotated[StrictInt, Field(gt=0), _lowered_to(1_000_000)] | None = None
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
    max_length: Annotated[StrictInt, Field(gt=0), _lowered_to(20_000)] = Field(
        500, description="Words; above 20000 it counts as 20000."
    )
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


Retries = Annotated[StrictInt, Field(ge=0, le=10)]


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
    sitemaps_only: StrictBool = Field(
        False,
        description="Whether only pages are read that the sitemaps name, and no links followed.",
    )
    use_browser: StrictBool = Field(False, description="As scrapeOptions.useBrowser.")
    regex_on_full_url: StrictBool = Field(
        False,
        alias="regexOnFullURL",
        description="Whether includePaths and excludePaths look at the whole address too.",
    )
    max_retries: Retries = Field(
        1, description="How often a page is asked for again whose host was busy or did not answer."
    )
    crawl_options: CrawlOptions = CrawlOptions()
    scrape_options: SiteScrapeOptions = SiteScrapeOptions()

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
    def reads_sitemaps(self) -> bool:
        """Whether pages are taken from the sitemaps."""
        return self.sitemaps_only or not self.skip_sitemaps

    @property
    def page_options(self) -> ScrapeOptions:
        """How each page is read."""
        if not self.use_browser:
            return self.scrape_options
        return self.scrape_options.model_copy(update={"use_browser": True})

    @property
    def width(self) -> int:
        """How many pages are fetched at once; by the browser, no more than its pool has."""
        width = min(self.crawl_options.max_concurrent_crawlers or WIDTH_DEFAULT, WIDTH_MAX)
        if self.page_options.needs_browser and self.crawl_options.browser_pool_size is not None:
            return min(width, self.crawl_options.browser_pool_size)
        return width


LIMIT_DEFAULT, LIMIT_MAX = 100, 10_000
DEPTH_DEFAULT, DEPTH_MAX = 5, 10
WIDTH_DEFAULT, WIDTH_MAX = 5, 20


class EstimateAsk(Ask):
    """Bounds above a crawl's are lowered to them."""

    url: Url
    limit: Count | None = None
    max_depth: Depth | None = None
    scrape_options: SiteScrapeOptions = SiteScrapeOptions()

    @property
    def pages_max(self) -> int:
        """How many pages such a crawl fetches at most."""
        return LIMIT_DEFAULT if self.limit is None else min(self.limit, LIMIT_MAX)

    @property
    def depth_max(self) -> int:
        """How many links away from the start its pages may be."""
        return DEPTH_DEFAULT if self.max_depth is None else min(self.max_depth, DEPTH_MAX)


class BatchAsk(Ask):
    urls: Annotated[list[Url], Field(min_length=1, max_length=1000)]
    concurrency: Annotated[StrictInt, Field(ge=1, le=20)] = 5
    webhook: Url | None = None
    timeout: Annotated[StrictInt, Field(ge=10_000, le=300_000)] | None = Field(
        None, description="Milliseconds that one page may take, with its retries."
    )
    fail_fast: StrictBool = Field(
        False, description="Whether the first page that fails ends the batch."
    )
    max_retries: Retries = Field(
        1, description="How often a page is asked for again whose host was busy or did not answer."
    )
    options: ScrapeOptions = ScrapeOptions()


class LlmsTxtAsk(Ask):
    url: Url
    max_urls: Annotated[StrictInt, Field(ge=1, le=500)] = 50
    include_full_text: StrictBool = False

    def as_crawl(self) -> CrawlAsk:
        """The crawl that finds the pages: what the sitemaps name, and what is linked."""
        return CrawlAsk.model_validate(
            {
                "url": self.url,
                "limit": self.max_urls,
                "maxDepth": 3,
                "skipSitemaps": False,
                "scrapeOptions": {"extractorFormat": "markdown", "fitMarkdown": True},
            }
        )


class ParseAsk(Ask):
    """A document: its bytes, or where they are."""

    content: Annotated[StrictStr, Field(min_length=1)] | None = Field(None, description="Base64.")
    url: Url | None = None
    content_type: Annotated[StrictStr, Field(max_length=200)] = Field(
        "",
        description="A media type or a short name such as `docx`; what the bytes say goes before it.",
    )
    only_main_content: StrictBool = Field(False, description="Of HTML.")

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        return one_of(self, "content", "url")


Prompt = Annotated[StrictStr, Field(min_length=1, max_length=5000)]
EXTRACT_PAGES_MAX = 1000


class ExtractTaskAsk(Ask):
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
    def _has_pages_and_a_wish(self) -> Self:
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
            update={"extractor_format": form, "formats": [], "extraction_options": None}
        )

    def as_crawl(self) -> CrawlAsk | None:
        """The crawl that finds the pages, where they are not named."""
        if self.url is None:
            return None
        ask = {"url": self.url, "limit": self.pages_max, "maxDepth": 3, "skipSitemaps": False}
        return CrawlAsk.model_validate(ask).model_copy(update={"scrape_options": self.page_options})


class AgentAsk(Ask):
    """What an agent shall come to, and where it begins."""

    url: Url
    prompt: Prompt = Field(description="The goal.")
    schema_: dict[str, Any] | None = Field(
        None, alias="schema", description="What `data` of the result fits."
    )
    max_steps: Annotated[StrictInt, Field(ge=1, le=20)] = 10
    allow_other_sites: StrictBool = Field(
        False, description="Whether it may leave the host of `url`."
    )
    model: ModelName | None = None


class MapAsk(Ask):
    url: Url
    max_urls: Annotated[StrictInt, Field(ge=1, le=30_000)] = 5000
    include_subdomains: StrictBool = True
    search_query: Annotated[StrictStr, Field(min_length=1, max_length=500)] | None = None
    skip_sitemaps: StrictBool = False
    sitemaps_only: StrictBool = False
    skip_cache: StrictBool = False
    cache_ttl: KeptS = Field(
        3600, description="Seconds for which the map is kept, 30 days at most."
    )
    timeout_ms: Annotated[StrictInt, Field(ge=1000), _lowered_to(50_000)] = Field(
        30_000, description="Above 50000 it counts as 50000."
    )
    include_patterns: Patterns = []
    exclude_patterns: Patterns = []


class SearchAsk(Ask):
    query: Annotated[StrictStr, Field(min_length=1, max_length=500)]
    limit: Annotated[StrictInt, Field(ge=1, le=50)] = 10
    provider: Annotated[StrictStr, Field(min_length=1, max_length=64)] | None = Field(
        None, description="The name of one search provider, which then answers alone."
    )
    lang: Annotated[StrictStr, Field(pattern=r"^[A-Za-z]{2}(-[A-Za-z]{2})?$")] | None = None
    scrape_results: StrictBool = False
    scrape_options: ScrapeOptions = ScrapeOptions()


class EndpointAsk(Ask):
    """A scrape, or with `schema` an extraction, under a name. `{name}` in `url` is a parameter."""

    slug: Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    url: Template
    params: Parameters = {}
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    options: dict[str, Any] = {}
