"""Request bodies of browser sessions and of API discovery."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from fairlead.scrape.requests.fields import RequestBody, Selector, StepMs, Url
from fairlead.scrape.requests.page import ScrapeOptions, StepOptions
from fairlead.scrape.requests.presentation import Cookies, Headers, Location, Viewport


class SessionRequest(RequestBody):
    """A new browser session."""

    initial_url: Url | None = None
    user_agent: Annotated[StrictStr, Field(min_length=1, max_length=500)] | None = None
    viewport: Viewport | None = None
    headers: Headers = Field(default={})
    cookies: Cookies = Field(default={})
    mobile: StrictBool = False
    location: Location | None = None

    @model_validator(mode="after")
    def _has_an_origin(self) -> Self:
        if (self.headers or self.cookies) and self.initial_url is None:
            raise PydanticCustomError(
                "no_valid_fields",
                "headers and cookies are for the origin of initialUrl: send it with them.",
            )
        return self


class DiscoverOptions(StepOptions):
    """Options of the discovery of a page's calls."""

    stealth_mode: StrictBool = False
    skip_tls_verification: StrictBool = False

    def as_scrape(self) -> ScrapeOptions:
        """The scrape during which the page is watched."""
        return ScrapeOptions.model_validate(
            {**self.model_dump(), "use_browser": True}, by_name=True, by_alias=False
        )


class DiscoverRequest(RequestBody):
    url: Url
    options: DiscoverOptions = DiscoverOptions()


class SessionAction(RequestBody):
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
        None, description="JavaScript that runs in the page; its value is the result."
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
