"""`/api/pricing`: prices of models, in USD per million tokens or per picture and other units, and the operator's
overrides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field, RootModel

from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.fields import ModelId, Text
from fairlead.gateway.nodes.table import all_nodes
from fairlead.gateway.pricing.table import (
    Price,
    count_overrides,
    delete_overrides,
    put_override,
    read_overrides,
)
from fairlead.gateway.providers.catalogue import CatalogueProvider, catalogue
from fairlead.gateway.providers.endpoint import Provider
from fairlead.gateway.providers.price import ModelPrice, in_micros, in_usd
from fairlead.gateway.providers.snapshot import known_prices
from fairlead.gateway.providers.table import active_connections
from fairlead.moment import now_ms
from fairlead.records.provider_names import provider_id
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/pricing", tags=["pricing"])

MAX_OVERRIDES = 10_000

ProviderId = Annotated[Text, Field(min_length=1, max_length=200)]
Source = Literal["operator", "connection", "catalogue", "provider"]


class PriceView(ModelPrice):
    """A price in force, and whose word it is."""

    source: Source = Field(
        description="`operator`: set here; `connection`: set on a connection; `catalogue`: shipped "
        "with fairlead; `provider`: listed by the provider itself."
    )


class Pricing(RootModel[dict[str, dict[str, PriceView]]]):
    """Prices by provider and model."""


class Prices(
    RootModel[dict[ProviderId, Annotated[dict[ModelId, ModelPrice], Field(min_length=1)]]]
):
    """Prices to set, by provider and model."""


class Deleted(Wire):
    success: bool = True
    deleted: int


@router.get("", summary="Prices of models")
async def show(
    services: ServicesDep, provider: Annotated[str | None, Query(max_length=200)] = None
) -> Pricing:
    """In USD per million tokens: those of every provider that has an active connection, and all that
    are set here.
    """

    def read(con: Connection) -> dict[str, dict[str, PriceView]]:
        prices = _in_force(con)
        if provider is None:
            return prices
        return {provider: prices.get(_id_of(con, provider, prices), {})}

    prices = await services.state.read(read)
    return Pricing.model_construct(prices)


@router.put("", summary="Set prices of models")
async def put(new: Prices, services: ServicesDep) -> Pricing:
    """Each sent price replaces the known one; others stay. The prices apply to calls after this returns; settled
    calls keep their cost.
    """
    return await _set(new, services)


@router.patch("", summary="Set prices of models, leaving the others")
async def patch(new: Prices, services: ServicesDep) -> Pricing:
    """Does what PUT does: prices that are not sent stay."""
    return await _set(new, services)


@router.delete("", summary="Take back prices that were set")
async def take_back(
    services: ServicesDep,
    provider: Annotated[str | None, Query(max_length=200)] = None,
    model: Annotated[str | None, Query(max_length=300)] = None,
) -> Deleted:
    """Takes back the prices of one model, of a provider, or all; the known prices are in force
    again when this is answered.
    """
    if model is not None and provider is None:
        raise InvalidRequest("model also needs provider.", param="provider")

    def delete_rows(con: Connection) -> int:
        named = None if provider is None else _id_of(con, provider, read_overrides(con))
        deleted = delete_overrides(con, named, model)
        if not deleted and provider is not None:
            raise NotFound("No price is set for this.", param="model" if model else "provider")
        return deleted

    return Deleted(deleted=await services.state.commit(delete_rows))


async def _set(new: Prices, services: ServicesDep) -> Pricing:
    ids: dict[str, str] = {}

    def store(con: Connection) -> dict[str, dict[str, PriceView]]:
        at_ms = now_ms()
        ids.update({name: provider_id(con, name, name[:80]) for name in new.root})
        for name, models in new.root.items():
            provider = ids[name]
            for model, price in models.items():
                put_override(con, provider, model, in_micros(price), at_ms)
        if count_overrides(con) > MAX_OVERRIDES:
            raise InvalidRequest(f"At most {MAX_OVERRIDES} prices may be set; take some back.")
        return _in_force(con)

    prices = await services.state.commit(store)
    return Pricing.model_construct({name: prices[ids[name]] for name in new.root})


def _id_of(con: Connection, name: str, stored: Mapping[str, object]) -> str:
    """The provider's id by any of its names; prices of a deleted node are taken back by its id."""
    return name if name in stored else provider_id(con, name)


def _in_force(con: Connection) -> dict[str, dict[str, PriceView]]:
    overrides = read_overrides(con)
    providers: Mapping[str, Provider] = {**all_nodes(con), **catalogue()}
    prices: dict[str, dict[str, PriceView]] = {
        name: {model: _view(price, "operator") for model, price in models.items()}
        for name, models in overrides.items()
    }
    for connection in active_connections(con):
        provider = providers.get(connection.provider)
        if provider is None:
            continue
        models = prices.setdefault(connection.provider, {})
        own = connection.provider_specific.get("prices") or {}
        shipped = (
            {entry.id for entry in provider.models}
            if isinstance(provider, CatalogueProvider)
            else set()
        )
        for model, price in known_prices(provider, connection):
            source: Source = (
                "connection" if model in own else "catalogue" if model in shipped else "provider"
            )
            models.setdefault(model, _view(price, source))
    return {name: dict(sorted(models.items())) for name, models in sorted(prices.items())}


def _view(price: Price, source: Source) -> PriceView:
    return PriceView.model_construct(source=source, **in_usd(price))
