"""The headers of a request for a page: those for every host that it leads to, and those for its own origin alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead import __version__
from fairlead.net.url import split_url
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.requests.presentation import Location

MOBILE_AGENT: Final = (
    "Mozilla/5.0 (Linux; Android 15; Mobile) AppleWebKit/537.36 (KHTML, like Gecko) "
    f"Chrome/140.0.0.0 Mobile Safari/537.36 fairlead/{__version__}"
)


@dataclass(frozen=True, slots=True)
class SentHeaders:
    """Headers by their names in lower case. `private` ones are sent to the origin of the first address alone."""

    public: Mapping[str, str] = field(default_factory=dict)
    private: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to(self, url: str, first: str) -> dict[str, str]:
        """The headers of a request to `url`, where `first` was asked for."""
        is_own = origin_of(url) == origin_of(first)
        return {**self.public, **(self.private if is_own else {})}


NO_HEADERS: Final = SentHeaders()


def headers_of(options: ScrapeOptions, conditions: Mapping[str, str]) -> SentHeaders:
    """The headers that a scrape's options ask for. `conditions` are those of a cached copy."""
    public = {**language_headers(options.location), **conditions}
    if options.mobile:
        public["user-agent"] = MOBILE_AGENT
    return SentHeaders(public, private_headers(options.headers, options.cookies))


def language_headers(location: Location | None) -> dict[str, str]:
    """`accept-language`, if languages are sent."""
    value = location.accept_language if location is not None else None
    return {"accept-language": value} if value else {}


def private_headers(headers: Mapping[str, str], cookies: Mapping[str, str]) -> dict[str, str]:
    """A caller's headers, and its cookies as a header."""
    private = {name.lower(): value.strip() for name, value in headers.items()}
    pairs = [private.get("cookie", ""), *(f"{name}={value}" for name, value in cookies.items())]
    if cookie := "; ".join(filter(None, pairs)):
        private["cookie"] = cookie
    return private


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address."""
    parts = split_url(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, (parts.hostname or "").lower(), port
