"""`/v1/search` for callers and `/api/search-providers` for operators."""

from __future__ import annotations

import time
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Response
from pydantic import Field, SecretStr, StrictBool, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from fairlead import _core
from fairlead.calls.cost_header import cost_header
from fairlead.errors import InvalidRequest
from fairlead.moment import iso, moment_of, now_ms
from fairlead.money import micros_of, usd_of
from fairlead.net.host import AddressRefused, spell_origin, split_address
from fairlead.net.operator_egress import POLICY
from fairlead.net.secret_origin import check_secret_origin
from fairlead.net.url import split_url
from fairlead.search.engines import ENGINES, Kind
from fairlead.search.query import SearchQuery
from fairlead.search.run import search
from fairlead.search.table import (
    SearchProvider,
    change_provider,
    delete_provider,
    find_provider,
    insert_provider,
    list_providers,
    usable_providers,
)
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(tags=["search"])

Name = Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Url = Annotated[StrictStr, Field(min_length=8, max_length=2000)]
Usd = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Priority = Annotated[StrictInt, Field(ge=1, le=1000)]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=1000)]


class NewProvider(Wire):
    """The body that adds a search provider."""

    name: Name
    kind: Kind
    base_url: Url | None = Field(None, description="Needed for `searxng` only.")
    api_key: Secret | None = None
    priority: Priority = 50
    is_active: StrictBool = True
    per_query: Usd | None = Field(None, description="The price of a search, in USD.")


class ProviderChange(Wire):
    """The body that changes a search provider."""

    name: Name | None = None
    base_url: Url | None = None
    api_key: Secret | None = None
    priority: Priority | None = None
    is_active: StrictBool | None = None
    per_query: Usd | None = None


@router.post("/v1/search", summary="Search the web")
async def run_search(
    body: SearchQuery, services: ServicesDep, response: Response
) -> dict[str, Any]:
    """Searches the web with the first search provider that answers, or with the one that `provider` names."""
    started = time.monotonic()
    answer = await search(services, body)
    response.headers.update(cost_header(answer.provider, answer.usd_micros))
    retrieved_at = iso(moment_of(now_ms()))
    return {
        "object": "list",
        "query": body.query,
        "provider": answer.provider,
        "results": [
            {
                "title": found.title,
                "url": found.url,
                "display_url": split_url(found.url).netloc + split_url(found.url).path,
                "snippet": found.snippet,
                "position": body.offset + number,
                "score": found.score,
                "published_at": found.published_at,
                "citation": {
                    "provider": answer.provider,
                    "retrieved_at": retrieved_at,
                    "rank": number,
                },
            }
            for number, found in enumerate(answer.results, start=1)
        ],
        "count": len(answer.results),
        "latency_ms": round((time.monotonic() - started) * 1000),
    }


@router.get("/v1/search", summary="The search providers")
async def providers(services: ServicesDep) -> dict[str, Any]:
    """Lists search providers by name, in the order in which they are tried."""
    found = await services.state.read(usable_providers)
    data = [{"id": one.name, "object": "search_provider", "kind": one.kind} for one in found]
    return {"object": "list", "data": data}


@router.get("/api/search-providers", summary="List search providers")
async def listed(services: ServicesDep) -> dict[str, Any]:
    """Lists search providers with their base URLs, without their keys."""
    found = await services.state.read(list_providers)
    return {"providers": [_view(one) for one in found], "total": len(found)}


@router.post("/api/search-providers", summary="Add a search provider", status_code=201)
async def add(body: NewProvider, services: ServicesDep) -> dict[str, Any]:
    """Adds a search provider. `searxng` needs a `baseUrl`, the others an `apiKey`."""
    engine = ENGINES[body.kind]
    base_url = body.base_url or engine.base_url
    if base_url is None:
        raise InvalidRequest("baseUrl is required for this kind.", param="baseUrl")
    if engine.needs_key and body.api_key is None:
        raise InvalidRequest("apiKey is required for this kind.", param="apiKey")
    provider_id = str(uuid4())
    provider = SearchProvider(
        provider_id,
        body.name,
        body.kind,
        _address(base_url),
        _sealed(services, provider_id, body.api_key),
        body.priority,
        body.is_active,
        now_ms(),
        None if body.per_query is None else micros_of(body.per_query),
    )
    await services.state.commit(lambda con: insert_provider(con, provider))
    return {"provider": _view(provider)}


@router.get("/api/search-providers/{provider_id}", summary="One search provider")
async def one(provider_id: str, services: ServicesDep) -> dict[str, Any]:
    """Reads a search provider, without its key."""
    return {
        "provider": _view(await services.state.read(lambda con: find_provider(con, provider_id)))
    }


@router.patch("/api/search-providers/{provider_id}", summary="Change a search provider")
async def change(provider_id: str, body: ProviderChange, services: ServicesDep) -> dict[str, Any]:
    """Changes the fields that are sent; null removes `apiKey` or `perQuery`."""
    changes: dict[str, Any] = {}
    for name in body.model_fields_set:
        value = getattr(body, name)
        if name == "api_key":
            changes["key_sealed"] = _sealed(services, provider_id, value)
        elif name == "per_query":
            changes[name] = None if value is None else micros_of(value)
        elif value is None:
            raise InvalidRequest(f"{to_camel(name)} must not be null.", param=to_camel(name))
        else:
            changes[name] = _address(value) if name == "base_url" else value
    if not changes:
        raise InvalidRequest("No valid fields to update: send at least one field.")

    def update(con: Connection) -> SearchProvider:
        before = find_provider(con, provider_id)
        if before.key_sealed is not None and "base_url" in changes and "key_sealed" not in changes:
            check_secret_origin("apiKey", [before.base_url], [changes["base_url"]])
        return change_provider(con, provider_id, changes)

    return {"provider": _view(await services.state.commit(update))}


@router.delete(
    "/api/search-providers/{provider_id}", summary="Delete a search provider", status_code=204
)
async def delete(provider_id: str, services: ServicesDep) -> Response:
    """Deletes a search provider with its key."""
    await services.state.commit(lambda con: delete_provider(con, provider_id))
    return Response(status_code=204)


def _view(provider: SearchProvider) -> dict[str, Any]:
    return {
        "id": provider.id,
        "name": provider.name,
        "kind": provider.kind,
        "baseUrl": provider.base_url,
        "hasKey": provider.key_sealed is not None,
        "perQuery": None if provider.per_query is None else usd_of(provider.per_query),
        "priority": provider.priority,
        "isActive": provider.is_active,
        "createdAt": iso(moment_of(provider.created_at_ms)),
    }


def _sealed(services: ServicesDep, provider_id: str, key: SecretStr | None) -> bytes | None:
    if key is None:
        return None
    text = key.get_secret_value()
    if not text.isascii() or not text.isprintable():
        raise InvalidRequest("apiKey must be printable ASCII.", param="apiKey")
    return services.state.sealer.seal(provider_id, text.encode())


def _address(text: str) -> str:
    try:
        parts = split_address(text, instead_of_login="; send the key as apiKey")
        if parts.query or parts.fragment or not text.isascii() or not text.isprintable():
            raise AddressRefused("must have neither query nor fragment, and be printable ASCII")
        return spell_origin(parts, _allowed) + parts.path.rstrip("/")
    except AddressRefused as refusal:
        raise InvalidRequest(f"baseUrl {refusal}.", param="baseUrl") from None


def _allowed(address: str) -> str:
    if not _core.address_allowed(address, POLICY):
        raise AddressRefused(f"must not be {address}, which is never dialled")
    return address
