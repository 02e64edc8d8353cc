"""`GET /api/models/catalog`: every model that is known, by provider and type."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Query

from fairlead.errors import InvalidRequest
from fairlead.gateway.models.table import models_of
from fairlead.gateway.nodes.table import Node, all_nodes
from fairlead.gateway.providers.catalogue import (
    Capability,
    CatalogueModel,
    CatalogueProvider,
    Mode,
    catalogue,
)
from fairlead.gateway.providers.models import known_models, override_model, typed
from fairlead.gateway.providers.price import PriceTier, in_usd
from fairlead.gateway.providers.table import active_connections
from fairlead.records.provider_names import provider_id
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
    """`total` counts the models that fit, on all pages; `next` is sent as `after` for those behind."""

    providers: list[ProviderEntry]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True)
class _Model:
    """A model by its provider's name for it: as the catalogue has it, and with what its connections and
    the operator say.
    """

    name: str
    built_in: CatalogueModel | None
    fields: dict[str, Any]

    @property
    def kind(self) -> str:
        """The model's type: chat, embedding and others."""
        return str(self.fields.get("mode") or "chat")

    @property
    def capabilities(self) -> list[str]:
        """The model's capabilities, as far as somebody lists them."""
        return list(self.fields.get("capabilities") or ())


@dataclass(frozen=True, slots=True)
class CatalogueFilter:
    """Which models are wanted; None and an empty text do not filter. `words` is in the id or the name of
    a model, without regard to case; a page has at most `limit` models behind `after`, a provider and
    the name of one of its models.
    """

    provider: str | None = None
    connected: bool | None = None
    words: str = ""
    kind: str | None = None
    capability: str | None = None
    after: tuple[str, str] | None = None
    limit: int | None = None

    def takes_provider(self, provider: str, prefix: str, *, is_connected: bool) -> bool:
        """Whether models of this provider are wanted."""
        return self.provider in (None, provider, prefix) and self.connected in (None, is_connected)

    def takes(self, model_id: str, name: str | None, model: _Model) -> bool:
        """Whether this model of a wanted provider is."""
        if self.kind not in (None, model.kind):
            return False
        if self.capability is not None and self.capability not in model.capabilities:
            return False
        return (
            not self.words or self.words in model_id.lower() or self.words in (name or "").lower()
        )


@router.get("", summary="All models by provider and type")
async def read(
    services: ServicesDep,
    provider: Annotated[str | None, Query(max_length=200)] = None,
    connected: bool | None = None,
    words: Annotated[str | None, Query(alias="q", max_length=200)] = None,
    kind: Annotated[Mode | None, Query(alias="type")] = None,
    capability: Capability | None = None,
    after: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int | None, Query(ge=1, le=500)] = None,
) -> Catalogue:
    """Built-in providers and nodes; `connected` keeps those with, or without, a connection, `q` the
    models whose id or name has these letters. With `limit` it comes in pages, by provider and name.
    """
    behind: tuple[str, str] | None = None
    if after is not None:
        owner, slash, name = after.partition("/")
        if not slash or not name:
            raise InvalidRequest("after must be the `next` of a page.", param="after")
        behind = (owner, name)
    wanted = CatalogueFilter(
        provider, connected, (words or "").strip().lower(), kind, capability, behind, limit
    )

    def read_page(con: Database) -> CataloguePage:
        if provider is not None:
            provider_id(con, provider)
        return catalogue_page(con, wanted)

    found = await services.state.read(read_page)
    return Catalogue.model_construct(providers=found.entries, total=found.total, next=found.next)


@dataclass(slots=True)
class CataloguePage:
    """Providers with the models that fit, how many fit in all, and where the next page begins."""

    entries: list[ProviderEntry]
    total: int = 0
    next: str | None = None
    shown: int = 0


def catalogue_page(con: Database, wanted: CatalogueFilter) -> CataloguePage:
    """A page of the providers and models that are wanted."""
    known, connected, model_settings = _known(con)
    owners: dict[str, CatalogueProvider | Node] = {**catalogue(), **all_nodes(con)}
    page = CataloguePage([])
    for owner_id in sorted(owners):
        owner = owners[owner_id]
        prefix = owner_id if isinstance(owner, CatalogueProvider) else owner.prefix
        is_connected = owner_id in connected
        if not wanted.takes_provider(owner_id, prefix, is_connected=is_connected):
            continue
        models = _chosen(owner, prefix, known.get(owner_id, {}), model_settings, wanted)
        shown = _shown(page, owner_id, models, wanted)
        if not shown and wanted.limit is not None:
            continue
        page.entries.append(
            _provider_entry(owner, prefix, shown, model_settings, is_connected=is_connected)
        )
    return page


def _known(
    con: Database,
) -> tuple[dict[str, dict[str, dict[str, Any]]], set[str], dict[tuple[str, str], Any]]:
    """Models of connections and operators, by provider; the connected providers; the operators' rows."""
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
    model_settings = {(row.provider, row.model_id): row for row in models_of(con)}
    for provider, model_id in model_settings:
        known.setdefault(provider, {}).setdefault(model_id, {"id": model_id})
    return known, connected, model_settings


def _chosen(
    owner: CatalogueProvider | Node,
    prefix: str,
    known: dict[str, dict[str, Any]],
    model_settings: dict[tuple[str, str], Any],
    wanted: CatalogueFilter,
) -> list[_Model]:
    """The models of a provider that are wanted, by name."""
    listed = _listed(owner.id) if isinstance(owner, CatalogueProvider) else {}
    found = []
    for name in sorted(listed.keys() | known.keys()):
        built_in, row = listed.get(name), model_settings.get((owner.id, name))
        shown = known.get(name, {}).get("name")
        if row is not None and row.settings.get("model_name"):
            shown = row.settings["model_name"]
        base = {} if built_in is None else built_in.model_dump(include=_SAID, exclude_defaults=True)
        fields = typed(owner, {**base, **known.get(name, {"id": name})})
        model = _Model(name, built_in, override_model(owner, row, fields))
        if wanted.takes(f"{prefix}/{name}", shown, model):
            found.append(model)
    return found


@cache
def _listed(provider: str) -> dict[str, CatalogueModel]:
    owner = catalogue()[provider]
    return {model.id: model for model in owner.models if owner.is_served(model.id, model.mode)}


def _shown(
    page: CataloguePage, owner_id: str, models: list[_Model], wanted: CatalogueFilter
) -> list[_Model]:
    """The models on the page, which counts them and learns where it ends."""
    page.total += len(models)
    if wanted.after is not None:
        models = [each for each in models if (owner_id, each.name) > wanted.after]
    if wanted.limit is None:
        return models
    remaining = wanted.limit - page.shown
    shown = models[: max(remaining, 0)]
    if len(models) > len(shown) and page.next is None:
        last = shown[-1].name if shown else None
        if last is not None:
            page.next = f"{owner_id}/{last}"
        elif page.entries:
            page.next = _last_of(page.entries[-1])
    page.shown += len(shown)
    return shown


def _last_of(entry: ProviderEntry) -> str:
    """The last model of a page that ended with its provider."""
    names = [model.id for models in entry.models.values() for model in models]
    return f"{entry.id}/{max(names).removeprefix(entry.prefix + '/')}"


def _provider_entry(
    owner: CatalogueProvider | Node,
    prefix: str,
    models: list[_Model],
    model_settings: dict[tuple[str, str], Any],
    *,
    is_connected: bool,
) -> ProviderEntry:
    grouped = _by_type(owner.id, prefix, models, model_settings)
    dialect: str
    if isinstance(owner, CatalogueProvider):
        dialect, as_of, source = owner.dialect, owner.as_of, owner.source
    else:
        dialect, as_of, source = owner.type.removesuffix("-compatible"), None, None
    return ProviderEntry.model_construct(
        id=owner.id,
        name=owner.name,
        prefix=prefix,
        dialect=dialect,
        connected=is_connected,
        as_of=as_of,
        source=source,
        models=grouped,
    )


def _by_type(
    provider: str, prefix: str, models: list[_Model], model_settings: dict[tuple[str, str], Any]
) -> dict[str, list[ModelEntry]]:
    grouped: dict[str, list[ModelEntry]] = {}
    for each in models:
        built_in, row = each.built_in, model_settings.get((provider, each.name))
        model = each.fields
        grouped.setdefault(each.kind, []).append(
            ModelEntry.model_construct(
                id=f"{prefix}/{each.name}",
                name=model.get("name"),
                context_length=model.get("context_length"),
                max_output_tokens=model.get("max_output_tokens"),
                capabilities=each.capabilities,
                price=_price(built_in, model),
                retires_on=None if built_in is None else built_in.retires_on,
                is_custom=row is not None and row.is_custom,
                is_hidden=row is not None and bool(row.settings.get("is_hidden")),
            )
        )
    return grouped


_SAID = {"mode", "context_length", "max_output_tokens", "capabilities"}


def _price(built_in: CatalogueModel | None, model: dict[str, Any]) -> ModelPriceView | None:
    price = model.get("price")
    if price is None and built_in is not None and built_in.price is not None:
        price = built_in.price.model_dump()
    if price is None:
        return None
    return ModelPriceView.model_construct(**in_usd(price))
