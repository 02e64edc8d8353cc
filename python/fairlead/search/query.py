"""A search query and its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

TimeRange = Literal["any", "hour", "day", "week", "month", "year"]
Domain = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9.-]{1,253}$")]


class Filters(BaseModel):
    """Filters of the results."""

    model_config = ConfigDict(extra="forbid")

    include_domains: list[Domain] = Field([], max_length=20)
    exclude_domains: list[Domain] = Field([], max_length=20)
    safe_search: Literal["off", "moderate", "strict"] | None = None


class SearchQuery(BaseModel):
    """A search query, independent of the engine."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[StrictStr, Field(min_length=1, max_length=500)]
    provider: Annotated[StrictStr, Field(min_length=1, max_length=64)] | None = Field(
        None, description="The name of one engine, which then answers alone."
    )
    max_results: Annotated[StrictInt, Field(ge=1, le=100)] = 5
    search_type: Literal["web", "news"] = "web"
    offset: Annotated[StrictInt, Field(ge=0, le=1000)] = 0
    country: Annotated[StrictStr, Field(pattern=r"^[A-Za-z]{2}$")] | None = None
    language: Annotated[StrictStr, Field(pattern=r"^[A-Za-z]{2}(-[A-Za-z]{2})?$")] | None = None
    time_range: TimeRange = "any"
    filters: Filters = Filters()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A result of an engine; `published_at` is in the engine's own format."""

    title: str
    url: str
    snippet: str
    score: float | None = None
    published_at: str | None = None
