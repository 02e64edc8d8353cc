"""Reads a connection's usage from the provider, and stores the answer.

Figures are shown until there are newer ones, with their time; an answer without figures, or no answer, keeps
them and adds the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import httpx
import orjson
import structlog

from fairlead.errors import InvalidRequest
from fairlead.gateway.outbound.tunnel import ProxyFailed
from fairlead.gateway.provider_usage.figures import read_figures, text_at
from fairlead.gateway.providers.access_token import TokenRefused
from fairlead.gateway.providers.catalogue import CatalogueProvider, UsageRead, UsageSection
from fairlead.gateway.providers.client import fetch, open_client
from fairlead.gateway.providers.connection_test import found_connection
from fairlead.gateway.providers.credentials import Credentials, open_credentials
from fairlead.gateway.providers.endpoint import Endpoint, find_provider, reached_endpoint
from fairlead.gateway.providers.probe import headers_for
from fairlead.gateway.providers.table import Connection
from fairlead.moment import iso, moment_of, ms_of, now_ms
from fairlead.net.operator_egress import AddressForbidden
from fairlead.records.provider_usage import (
    ProviderUsage,
    UsageFigure,
    find_provider_usage,
    put_provider_usage,
)
from fairlead.store.file import Connection as Database
from fairlead.store.sealer import Sealer
from fairlead.store.services import Services

DEADLINE_S: Final = 20.0
PAGES_MAX: Final = 10


class _ReadFailed(Exception):
    """The provider tells nothing that can be used; the text says why and has no word of the provider's."""


log = structlog.get_logger("fairlead.gateway")


@dataclass(frozen=True, slots=True)
class _Question:
    """A question to a connection's provider, with the credentials for it."""

    connection: Connection
    known: ProviderUsage
    endpoint: Endpoint
    reads: tuple[UsageRead, ...]
    own_key: str | None

    def credentials_for(self, sealer: Sealer, read: UsageRead) -> Credentials:
        credentials = open_credentials(sealer, self.connection)
        return replace(credentials, api_key=self.own_key) if read.own_key else credentials


def usage_section(con: Database, connection: Connection) -> UsageSection | None:
    """The known usage routes of a connection's provider; None if there is none, or if the connection has a custom
    address, which the catalogue does not know.
    """
    provider = find_provider(con, connection.provider)
    if not isinstance(provider, CatalogueProvider):
        return None
    return None if connection.provider_specific.get("base_url") else provider.usage


def needs_own_key(section: UsageSection) -> bool:
    """Whether the provider reports nothing without a key that an operator sets for it."""
    return all(read.own_key for read in section.reads)


def seal_usage_key(sealer: Sealer, connection_id: str, key: str) -> bytes:
    """The sealed form of a connection's key for usage routes."""
    return sealer.seal(_sealed_as(connection_id), key.encode())


async def read_usage(services: Services, connection_id: str) -> ProviderUsage:
    """Asks the provider and stores what it tells; `InvalidRequest` where it has no such route, or wants a key
    that is not set.
    Never raises for errors of the provider or the network.
    """
    sealer = services.state.sealer
    question = await services.state.read(lambda con: _question(con, sealer, connection_id))
    figures, failure = await _fetch(question, sealer)
    at_ms = now_ms()

    def store(con: Database) -> ProviderUsage:
        now = found_connection(con, connection_id)
        known = find_provider_usage(con, connection_id)
        if (now.credentials_sealed, known.key_sealed) != (
            question.connection.credentials_sealed,
            question.known.key_sealed,
        ):
            # The credential has changed: the figures do not belong to it.
            return known
        usage = replace(known, asked_at_ms=at_ms, last_error=failure)
        usage = (
            replace(usage, figures=tuple(figures), read_at_ms=at_ms, failures=0)
            if figures
            else replace(usage, failures=known.failures + 1)
        )
        put_provider_usage(con, usage)
        return usage

    return await services.state.record(store)


def _question(con: Database, sealer: Sealer, connection_id: str) -> _Question:
    connection = found_connection(con, connection_id)
    section, known = (
        usage_section(con, connection),
        find_provider_usage(con, connection_id),
    )
    provider = find_provider(con, connection.provider)
    if section is None or not isinstance(provider, CatalogueProvider):
        raise InvalidRequest(
            "This connection's provider has no documented usage route.", param="id"
        )
    if needs_own_key(section) and known.key_sealed is None:
        raise InvalidRequest(
            f"{provider.name} reports usage only with an administrator's key: set one with "
            f"PUT /api/providers/{connection_id}/usage.",
            param="usageKey",
        )
    own_key = None
    if known.key_sealed is not None:
        own_key = sealer.unseal(_sealed_as(connection_id), known.key_sealed).decode()
    endpoint = reached_endpoint(
        con, sealer, provider, connection.auth_type, connection.provider_specific
    )
    reads = tuple(read for read in section.reads if own_key is not None or not read.own_key)
    return _Question(connection, known, endpoint, reads, own_key)


async def _fetch(question: _Question, sealer: Sealer) -> tuple[list[UsageFigure], str | None]:
    """The figures, and the error of the first that is missing."""
    figures: list[UsageFigure] = []
    failure: str | None = None
    begin = _month()
    try:
        async with (
            asyncio.timeout(DEADLINE_S),
            open_client(question.endpoint.proxy) as client,
        ):
            for read in question.reads:
                try:
                    headers = await headers_for(
                        client, question.endpoint, question.credentials_for(sealer, read)
                    )
                    pages = await _pages(client, read, headers, begin)
                except (_ReadFailed, TokenRefused) as error:
                    failure = failure or str(error)
                    continue
                since_ms = ms_of(begin) if "{month" in read.url else None
                figures += read_figures(read.figures, pages, since_ms)
    except TimeoutError:
        failure = f"The provider did not answer within {DEADLINE_S:g} s."
    except ProxyFailed as error:
        failure = str(error)
    except (httpx.HTTPError, AddressForbidden):
        failure = "The provider's usage route cannot be reached."
    except Exception as error:  # noqa: BLE001 - a stored key that no header can have, an address that is none: this connection's failure
        log.error(
            "usage not read", connection_id=question.connection.id, error=type(error).__name__
        )
        failure = f"The provider could not be asked ({type(error).__name__})."
    if not figures and failure is None:
        failure = "The provider's answer holds none of the figures that its documentation names."
    return figures, failure


async def _pages(
    client: httpx.AsyncClient, read: UsageRead, headers: dict[str, str], begin: datetime
) -> Sequence[Any]:
    """Every page of an answer. A sum over a part of the pages would be none, so too many are an error."""
    first = read.url.replace("{month_s}", str(ms_of(begin) // 1000))
    first = first.replace("{month}", str(iso(begin)))
    pages: list[Any] = []
    url = httpx.URL(first)
    for _ in range(PAGES_MAX):
        status, body = await fetch(client, str(url), headers)
        if status != 200:
            raise _ReadFailed(_refusal(status, own_key=read.own_key))
        try:
            page = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise _ReadFailed(
                "The provider's usage route answered something else than JSON."
            ) from None
        pages.append(page)
        further = None if read.next_page is None else text_at(page, read.next_page)
        if further is None:
            return pages
        url = httpx.URL(first).copy_merge_params({"page": further})
    raise _ReadFailed(f"The provider's usage has more than {PAGES_MAX} pages.")


def _refusal(status: int, *, own_key: bool) -> str:
    if status in (401, 403):
        whose = "the key that is set for its usage route" if own_key else "this credential"
        return f"The provider does not tell its usage to {whose} ({status})."
    if status == 429:
        return "The provider was asked for its usage too often (429)."
    return f"The provider's usage route answered {status}."


def _month() -> datetime:
    now = moment_of(now_ms()).astimezone(UTC)
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _sealed_as(connection_id: str) -> str:
    return f"provider-usage:{connection_id}"
