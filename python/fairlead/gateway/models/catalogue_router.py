"""`GET /api/models/catalog`: every model that is known, by provider and type."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Query

from fairlead.gateway.models.table import models_of
from fairlead.gateway.nodes.table import all_nodes
from fairlead.gateway.providers.catalogue import CatalogueModel, catalogue
from fairlead.gateway.providers.models import known_models, override_model
from fairlead.gateway.providers.price import PriceTier, in_usd
from fairlead.gateway.providers.table import active_connections
from fairlead.store.file import Connection as Database
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/models/catalog", tags=["models"])


class ModelPriceView(Wire):
    """USD per million tokens, and for each thing that is no token; `tiers` as in `/api/pricing`."""

    input: float
    output: float
    cached_input: float | None
    cache_write: float | None
    cache_write_hour: float | None
    per_image: float | None
    per_second: float | None
    per_page: float | None
    per_query: float | None
    per_million_characters: float | None
    tiers: list[PriceTier]


class ModelEntry(Wire):
    """`id` is the name that a request uses; sizes in tokens; `price` null where it is not known.
    `retiresOn` is the day from which the provider serves it no more, null where it named none.
    """

    id: str
    name: str | None
    context_length: int | None
    max_output_tokens: int | None
    capabilities: list[str]
    price: ModelPriceView | None
    retires_on: date | None
    is_custom: bool
    is_hidden: bool


class ProviderEntry(Wire):
    """`connected` tells whether an active connection serves it; `models` are by type."""

    id: str
    name: str
    prefix: str
    dialect: str
    connected: bool
    as_of: str | None
    source: str | None
    models: dict[str, list[ModelEntry]]


class Catalogue(Wire):
    providers: list[ProviderEntry]
    total: int


@router.get("", summary="All models by provider and type")
async def read(
    services: ServicesDep,
    provider: Annotated[str | None, Query(max_length=200)] = None,
    connected: bool | None = None,
) -> Catalogue:
    """Built-in providers and nodes; `connected` keeps those with, or without, a connection."""
    entries = await services.state.read(catalogue_entries)
    kept = [
        entry
        for entry in entries
        if (provider is None or provider in {entry.id, entry.prefix})
        and (connected is None or entry.connected == connected)
    ]
    total = sum(len(models) for entry in kept for models in entry.models.values())
    return Catalogue.model_construct(providers=kept, total=total)


def catalogue_entries(con: Database) -> list[ProviderEntry]:
    """Built-in providers and nodes with their models, by id."""
    nodes = all_nodes(con)
    known: dict[str, dict[str, dict[str, Any]]] = {}
    connected = set()
    for connection in active_connections(con):
        owner = catalogue().get(connection.provider) or nodes.get(connection.provider)
        if owner is None:
            continue
        connected.add(owner.id)
        models = known.setdefault(owner.id, {})
        for model in known_models(owner, connection):
            models.setdefault(model["id"], model)
    said = {(row.provider, row.model_id): row for row in models_of(con)}
    for provider, model_id in said:
        known.setdefault(provider, {}).setdefault(model_id, {"id": model_id})
    entries = []
    for built_in in catalogue().values():
        listed = {model.id: model for model in built_in.models}
        models = {name: {"id": name} for name in listed} | known.get(built_in.id, {})
        entries.append(
            ProviderEntry.model_construct(
                id=built_in.id,
                name=built_in.name,
                prefix=built_in.id,
                dialect=built_in.dialect,
                connected=built_in.id in connected,
                as_of=built_in.as_of,
                source=built_in.source,
                models=_by_type(built_in.id, built_in.id, models, listed, said),
            )
        )
    entries += [
        ProviderEntry.model_construct(
            id=node.id,
            name=node.name,
            prefix=node.prefix,
            dialect=node.type.removesuffix("-compatible"),
            connected=node.id in connected,
            as_of=None,
            source=None,
            models=_by_type(node.id, node.prefix, known.get(node.id, {}), {}, said),
        )
        for node in nodes.values()
    ]
    return sorted(entries, key=lambda entry: entry.id)


def _by_type(
    provider: str,
    prefix: str,
    models: dict[str, dict[str, Any]],
    listed: dict[str, CatalogueModel],
    said: dict[tuple[str, str], Any],
) -> dict[str, list[ModelEntry]]:
    grouped: dict[str, list[ModelEntry]] = {}
    for name in sorted(models):
        built_in, row = listed.get(name), said.get((provider, name))
        base = {} if built_in is None else built_in.model_dump(include=_SIZES, exclude_none=True)
        model = override_model(row, {**base, **models[name]})
        grouped.setdefault("chat" if built_in is None else built_in.mode, []).append(
            ModelEntry.model_construct(
                id=f"{prefix}/{name}",
                name=model.get("name"),
                context_length=model.get("context_length"),
                max_output_tokens=model.get("max_output_tokens"),
                capabilities=[] if built_in is None else list(built_in.capabilities),
                price=_price(built_in, model),
                retires_on=None if built_in is None else built_in.retires_on,
                is_custom=row is not None and row.is_custom,
                is_hidden=row is not None and bool(row.settings.get("is_hidden")),
            )
        )
    return grouped


_SIZES = {"context_length", "max_output_tokens"}


def _price(built_in: CatalogueModel | None, model: dict[str, Any]) -> ModelPriceView | None:
    price = model.get("price")
    if price is None and built_in is not None and built_in.price is not None:
        price = built_in.price.model_dump()
    if price is None:
        return None
    return ModelPriceView.model_construct(**in_usd(price))
