"""Request bodies of calls about sites: maps, searches, saved endpoints."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt, StrictStr

from fairlead.scrape.requests.fields import KeptS, Patterns, RequestBody, Url, lowered_to
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.saved.template import Parameters, Template


class MapRequest(RequestBody):
    url: Url
    max_urls: Annotated[StrictInt, Field(ge=1), lowered_to(30_000)] = 5000
    include_subdomains: StrictBool = True
    search_query: Annotated[StrictStr, Field(min_length=1, max_length=500)] | None = None
    skip_sitemaps: StrictBool = False
    sitemaps_only: StrictBool = False
    skip_cache: StrictBool = False
    cache_ttl: KeptS = Field(
        3600, description="Seconds for which the map is kept, 30 days at most."
    )
    timeout_ms: Annotated[StrictInt, Field(ge=1000), lowered_to(50_000)] = Field(
        30_000, description="Above 50000 it counts as 50000."
    )
    include_patterns: Patterns = Field(default=[])
    exclude_patterns: Patterns = Field(default=[])


class SearchRequest(RequestBody):
    query: Annotated[StrictStr, Field(min_length=1, max_length=500)]
    limit: Annotated[StrictInt, Field(ge=1), lowered_to(50)] = 10
    provider: Annotated[StrictStr, Field(min_length=1, max_length=64)] | None = Field(
        None, description="The name of one search provider, which then answers alone."
    )
    lang: Annotated[StrictStr, Field(pattern=r"^[A-Za-z]{2}(-[A-Za-z]{2})?$")] | None = None
    scrape_results: StrictBool = False
    scrape_options: ScrapeOptions = ScrapeOptions()


class EndpointRequest(RequestBody):
    """A scrape, or with `schema` an extraction, under a name. `{name}` in `url` is a parameter."""

    slug: Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    url: Template
    params: Parameters = Field(default={})
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    options: dict[str, Any] = Field(default={})
