"""Runs a search over the providers until one of them answers."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from fairlead.errors import FairleadError, InvalidRequest, UpstreamStatus
from fairlead.search.engine_client import query_engine
from fairlead.search.query import SearchQuery, SearchResult
from fairlead.search.table import SearchProvider, usable_providers
from fairlead.store.services import Services

log = structlog.get_logger("fairlead.search")


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The results and the provider that found them."""

    provider: str
    usd_micros: int
    results: list[SearchResult]


async def search(services: Services, query: SearchQuery) -> SearchOutcome:
    """The results of the first provider that answers, by priority, or of the named one.

    Raises `InvalidRequest` where no provider is available, the failure itself when one provider was tried, and
    `UpstreamStatus` that lists each failure when several were.
    """
    providers = await services.state.read(usable_providers)
    if query.provider is not None:
        providers = [one for one in providers if one.name == query.provider]
        if not providers:
            raise InvalidRequest(
                "There is no search provider of this name; `GET /v1/search` lists them.",
                param="provider",
            )
    if not providers:
        raise InvalidRequest(
            "No search engine is set: add one under /api/search-providers, or set scrapeSearchUrl "
            "to the address of a SearXNG instance."
        )
    failures: list[tuple[str, FairleadError]] = []
    for provider in providers:
        try:
            found = await query_engine(
                provider.kind, provider.base_url, key_of(services, provider), query
            )
        except FairleadError as failure:
            log.info("search provider failed", provider=provider.name, error=failure.kind)
            failures.append((provider.name, failure))
        else:
            return SearchOutcome(provider.name, provider.per_query or 0, found)
    if len(failures) == 1:
        raise failures[0][1]
    reasons = "; ".join(f"{name}: {failure.kind}" for name, failure in failures)
    raise UpstreamStatus(f"Every search provider failed: {reasons}.")


def key_of(services: Services, provider: SearchProvider) -> str:
    """The provider's decrypted key; empty where it has none."""
    if provider.key_sealed is None:
        return ""
    return services.state.sealer.unseal(provider.id, provider.key_sealed).decode()
