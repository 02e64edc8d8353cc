"""Request bodies of Firecrawl's API. Members that are not in these models are passed over and named in `warning`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from fairlead.scrape.requests.fields import Count, Depth, Patterns, Url, lowered_to
from fairlead.scrape.requests.presentation import Headers, Tags

NAMES_MAX: Final = 20
"""Members that a warning names."""

_CLIENTS: Final = frozenset({"origin", "integration"})
"""Members that say which client it is."""
_DEFAULTS: Final = {
    "fastMode": False,
    "blockAds": True,
}
"""Values that the clients send by default."""

Format = Annotated[StrictStr, Field(max_length=100)] | dict[str, Any]
Sitemap = Literal["skip", "include", "only"]


class FirecrawlBody(BaseModel):
    """The base of these bodies: camelCase names; unknown members are allowed."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow")

    @property
    def unknown(self) -> list[str]:
        """The members that are not served."""
        sent = (self.model_extra or {}).items()
        return [
            name[:40]
            for name, value in sent
            if value is not None and name not in _CLIENTS and _DEFAULTS.get(name) is not value
        ][:NAMES_MAX]


class PageOptions(FirecrawlBody):
    """The options of a page."""

    formats: list[Format] | None = Field(None, max_length=20)
    only_main_content: StrictBool | None = None
    wait_for: StrictInt | None = Field(None, ge=0, description="Milliseconds.")
    actions: list[dict[str, Any]] | None = Field(None, max_length=50)
    skip_tls_verification: StrictBool | None = None
    max_age: StrictInt | None = Field(
        None,
        ge=0,
        description="Milliseconds that a cached copy may be old; 0 reads the page again.",
    )
    store_in_cache: StrictBool | None = None
    headers: Headers | None = None
    include_tags: Tags | None = None
    exclude_tags: Tags | None = None
    mobile: StrictBool | None = None
    remove_base64_images: StrictBool | None = None
    timeout: Annotated[StrictInt, Field(gt=0)] | None = Field(None, description="Milliseconds.")
    location: dict[str, Any] | None = None


class ScrapeBody(PageOptions):
    url: Url


class Webhook(FirecrawlBody):
    """A webhook with options, of which the address alone is served."""

    url: Url


class CrawlBody(FirecrawlBody):
    url: Url
    limit: Count | None = None
    max_discovery_depth: Depth | None = None
    include_paths: Patterns | None = None
    exclude_paths: Patterns | None = None
    sitemap: Sitemap | None = None
    allow_subdomains: StrictBool | None = None
    crawl_entire_domain: StrictBool | None = None
    allow_external_links: StrictBool | None = None
    ignore_robots_txt: StrictBool | None = None
    ignore_query_parameters: StrictBool | None = None
    delay: Annotated[StrictInt | StrictFloat, Field(ge=0)] | None = Field(
        None, description="Seconds."
    )
    regex_on_full_url: StrictBool | None = Field(None, alias="regexOnFullURL")
    max_concurrency: Count | None = None
    webhook: Url | Webhook | None = None
    scrape_options: PageOptions | None = None


class BatchBody(PageOptions):
    urls: Annotated[list[Annotated[StrictStr, Field(max_length=10_000)]], Field(min_length=1)]
    ignore_invalid_urls: StrictBool | None = Field(None, alias="ignoreInvalidURLs")
    max_concurrency: Count | None = None
    webhook: Url | Webhook | None = None


class MapBody(FirecrawlBody):
    url: Url
    search: Annotated[StrictStr, Field(min_length=1, max_length=500)] | None = None
    sitemap: Sitemap | None = None
    include_subdomains: StrictBool | None = None
    limit: Annotated[StrictInt, Field(ge=1), lowered_to(30_000)] | None = None
    timeout: Annotated[StrictInt | StrictFloat, Field(ge=1)] | None = Field(
        None, description="Milliseconds."
    )


class SearchBody(FirecrawlBody):
    query: Annotated[StrictStr, Field(min_length=1, max_length=500)]
    limit: Annotated[StrictInt, Field(ge=1), lowered_to(50)] | None = None
    sources: list[Format] | None = Field(None, max_length=10)
    include_domains: list[StrictStr] | None = Field(None, max_length=20)
    exclude_domains: list[StrictStr] | None = Field(None, max_length=20)
    tbs: StrictStr | None = Field(None, description="`qdr:` and h, d, w, m or y.")
    country: StrictStr | None = None
    timeout: Annotated[StrictInt | StrictFloat, Field(gt=0)] | None = Field(
        None, description="Milliseconds."
    )
    scrape_options: PageOptions | None = None


class ExtractBody(FirecrawlBody):
    urls: Annotated[list[Url], Field(min_length=1, max_length=1000)]
    prompt: StrictStr | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    system_prompt: StrictStr | None = None
    ignore_invalid_urls: StrictBool | None = Field(None, alias="ignoreInvalidURLs")
    show_sources: StrictBool | None = None
    scrape_options: PageOptions | None = None
