"""Request bodies and options of one page: scrape, extract, summarize, parse, forget."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fairlead.scrape.requests.fields import (
    KeptS,
    ModelName,
    PauseMs,
    Prompt,
    RequestBody,
    Selector,
    SessionId,
    StepMs,
    Url,
    lowered_to,
    one_of,
)
from fairlead.scrape.requests.presentation import (
    Cookies,
    Headers,
    Location,
    ScreenshotOptions,
    Tags,
    TimeoutMs,
)


class Action(RequestBody):
    """One step in the browser before the page is read."""

    type: Literal["click", "scroll", "wait", "fill", "select"]
    selector: Selector | None = None
    value: Annotated[StrictStr, Field(max_length=10_000)] | None = None
    position: StrictInt | StrictFloat | None = None
    timeout: StepMs | None = Field(
        None, description="Milliseconds; above 30000 it counts as 30000."
    )
    optional: StrictBool = Field(False, description="Whether a step that fails is skipped.")


class StepOptions(RequestBody):
    """Waits and actions of a browser before a page is read."""

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
    "json",
    "summary",
]


BrowserUse = StrictBool | Literal["auto"] | None


class JsonOptions(RequestBody):
    """The data that the format `json` extracts."""

    schema_: dict[str, Any] | None = Field(
        None, alias="schema", description="A JSON Schema that the data fits."
    )
    prompt: Prompt | None = Field(None, description="What to look for.")

    @model_validator(mode="after")
    def _has_a_question(self) -> Self:
        if self.prompt is None and self.schema_ is None:
            raise PydanticCustomError(
                "no_valid_fields", "jsonOptions needs schema, prompt or both."
            )
        return self


class ScrapeOptions(CommonOptions):
    """Options of a scrape."""

    only_main_content: StrictBool = True
    fit_markdown: StrictBool = False
    use_browser: BrowserUse = Field(
        None,
        description="`auto` uses a browser where the page that HTTP gives is a shell that its scripts fill. Without it "
        "the setting `scrapeBrowser` counts.",
    )
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
        default=[], max_length=20, description="More forms of the page, in `formats`."
    )
    json_options: JsonOptions | None = Field(
        None, description="The data that the format `json` extracts; required with it."
    )
    model: ModelName | None = Field(
        None,
        description="The model of the formats `json` and `summary`; without it that of the setting `scrapeModel`.",
    )
    max_age: Annotated[StrictInt, Field(gt=0), lowered_to(30 * 86_400_000)] | None = Field(
        None, description="Milliseconds: a cached copy that is older is not used."
    )
    session_id: SessionId = None
    headers: Headers = Field(default={})
    cookies: Cookies = Field(default={})
    include_tags: Tags = Field(
        default=[],
        description="CSS selectors: the content is these elements alone; onlyMainContent does not apply then.",
    )
    exclude_tags: Tags = Field(
        default=[], description="CSS selectors of elements that are left out."
    )
    remove_base64_images: StrictBool = Field(
        False, description="Whether pictures are left out whose bytes are in the page."
    )
    mobile: StrictBool = Field(
        False,
        description="Whether the page is requested as a phone requests it. A browser has a phone's screen.",
    )
    timeout: TimeoutMs | None = Field(
        None,
        description="Milliseconds for the whole page. A call that waits for its answer takes 55000 at most.",
    )
    screenshot: ScreenshotOptions | None = Field(
        None, description="How the screenshot is made; asks for one, too."
    )
    location: Location | None = None

    @model_validator(mode="after")
    def _says_what_data(self) -> Self:
        if "json" in self.formats and self.json_options is None:
            raise PydanticCustomError(
                "no_valid_fields", "The format json needs jsonOptions with schema, prompt or both."
            )
        return self

    @property
    def model_forms(self) -> int:
        """How many of the requested formats a model writes."""
        return len({"json", "summary"} & set(self.formats))

    @property
    def needs_browser(self) -> bool:
        """Whether plain HTTP cannot do what is asked."""
        return (
            self.use_browser is True
            or self.wants_picture
            or self.wants_downloads
            or self.wants_print
            or super().needs_browser
        )

    @property
    def wants_picture(self) -> bool:
        """Whether a picture of the page is requested."""
        return self.screenshot is not None or self.wants("screenshot")

    @property
    def timeout_s(self) -> float | None:
        """The seconds that the page may take, if the caller has said so."""
        return None if self.timeout is None else self.timeout / 1000

    def without_secrets(self) -> Self:
        """The options for a page of an origin that headers and cookies are not for."""
        if not (self.headers or self.cookies):
            return self
        return self.model_copy(update={"headers": {}, "cookies": {}})

    @property
    def names_wait(self) -> bool:
        """Whether the caller says when a render has ended."""
        return bool(self.wait_for_selector or self.wait_for_timeout)

    def wants(self, name: str) -> bool:
        """Whether this is requested, in `formats` or in `extractionOptions`."""
        return name in self.formats or bool((self.extraction_options or {}).get(name))

    @property
    def wants_print(self) -> bool:
        """Whether a PDF or MHTML of the page is requested; such answers are not cached."""
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


class SummarizeOptions(CommonOptions):
    """Options of a summary."""

    temperature: Annotated[StrictFloat | StrictInt, Field(ge=0, le=2)] | None = None
    model: ModelName | None = None


class ExtractOptions(SummarizeOptions):
    """Options of an extraction by schema."""

    max_tokens: Annotated[StrictInt, Field(gt=0), lowered_to(1_000_000)] | None = None
    instructions: Annotated[StrictStr, Field(max_length=20_000)] | None = None


class ScrapeRequest(RequestBody):
    url: Url
    options: ScrapeOptions = ScrapeOptions()


class ExtractRequest(RequestBody):
    url: Url
    schema_: dict[str, Any] = Field(alias="schema")
    options: ExtractOptions = ExtractOptions()


class SummarizeRequest(RequestBody):
    url: Url
    max_length: Annotated[StrictInt, Field(gt=0), lowered_to(20_000)] = Field(
        500, description="Words; above 20000 it counts as 20000."
    )
    options: SummarizeOptions = SummarizeOptions()


class CacheRequest(RequestBody):
    url: Url | None = None


class ParseRequest(RequestBody):
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
