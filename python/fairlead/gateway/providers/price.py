"""A model's price: US dollars in the API, integer micro-dollars where it is stored and in the
snapshot.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from fairlead.money import micros_of, usd_of
from fairlead.wire import Wire

UsdPerMillion = Annotated[float, Field(strict=True, ge=0, le=100_000, allow_inf_nan=False)]
ServiceTier = Literal["batch", "flex", "priority", "ultrafast"]
SERVICE_TIERS: tuple[str, ...] = get_args(ServiceTier)

# The kinds of token with a separate price.
TOKEN_KINDS = ("input", "output", "cached_input", "cache_write", "cache_write_hour")
# The conditions of a tier.
_CONDITIONS = ("service", "above")
MAX_TIERS = 20

# By the names of `ModelPrice`; micro-dollars, and for `tiers` a list of the same.
Stored = dict[str, Any]


class PriceTier(Wire):
    """USD per million tokens above a size of the input, in a service tier, or both. Prices that it does not set
    are the same as without it.
    """

    service: ServiceTier | None = Field(
        None, description="As the provider's answer says it was served; null: as usual."
    )
    above: Annotated[StrictInt, Field(ge=1, le=1_000_000_000)] | None = Field(
        None,
        description="For calls with more input tokens than this, cached ones included, and then "
        "for all of their tokens; null: of any size.",
    )
    input: UsdPerMillion | None = None
    output: UsdPerMillion | None = None
    cached_input: UsdPerMillion | None = None
    cache_write: UsdPerMillion | None = None
    cache_write_hour: UsdPerMillion | None = None

    @model_validator(mode="after")
    def _holds_for_something(self) -> Self:
        if self.service is None and self.above is None:
            raise PydanticCustomError("tier", "must name `service` or `above`, or both")
        if all(getattr(self, name) is None for name in TOKEN_KINDS):
            raise PydanticCustomError("tier", "must name at least one price")
        return self


def _once_each(tiers: list[PriceTier]) -> list[PriceTier]:
    if len({(tier.service, tier.above) for tier in tiers}) < len(tiers):
        raise PydanticCustomError(
            "tiers", "must name each pair of `service` and `above` once; put its prices together"
        )
    return tiers


class ModelPrice(Wire):
    """USD per million tokens. A missing price of cached or cache-writing input is that of input; a missing
    one-hour write price is that of a write. USD for each other unit. If a model has both, tokens are charged if
    the provider reports tokens.
    """

    input: UsdPerMillion = 0.0
    output: UsdPerMillion = 0.0
    cached_input: UsdPerMillion | None = None
    cache_write: UsdPerMillion | None = None
    cache_write_hour: UsdPerMillion | None = Field(
        None, description="Tokens that the provider caches for an hour instead of minutes."
    )
    per_image: UsdPerMillion | None = Field(None, description="A picture that is made.")
    per_second: UsdPerMillion | None = Field(None, description="A second of a recording.")
    per_page: UsdPerMillion | None = Field(None, description="A page of a document.")
    per_query: UsdPerMillion | None = Field(None, description="A search, a reranking.")
    per_million_characters: UsdPerMillion | None = Field(
        None, description="A million characters that are read aloud."
    )
    tiers: Annotated[list[PriceTier], Field(max_length=MAX_TIERS), AfterValidator(_once_each)] = (
        Field([], description="Prices of tokens for long inputs and in other service tiers.")
    )

    @model_validator(mode="after")
    def _names_a_price(self) -> Self:
        if not self.model_fields_set:
            raise PydanticCustomError("price", "must name at least one price")
        return self


def in_micros(price: ModelPrice) -> Stored:
    """The stored form of a price."""
    stored = {
        name: None if usd is None else micros_of(usd)
        for name, usd in price.model_dump(exclude={"tiers"}).items()
    }
    return stored | {"tiers": [_tier_in_micros(tier) for tier in price.tiers]}


def in_usd(stored: Stored) -> dict[str, Any]:
    """The fields of a `ModelPrice`, by their names in Python, from the stored form."""
    fields: dict[str, Any] = {
        name: None if stored.get(name) is None else usd_of(stored[name])
        for name in ModelPrice.model_fields
        if name != "tiers"
    }
    return fields | {"tiers": [_tier_in_usd(tier) for tier in stored.get("tiers") or ()]}


def in_snapshot(stored: Stored) -> Stored:
    """The form of the snapshot: most models deal in tokens alone and have one price of them, so
    what has none is left out.
    """
    written = {
        name: value
        for name, value in stored.items()
        if value is not None or name in ("cached_input", "cache_write")
    }
    tiers = [
        {name: value for name, value in tier.items() if value is not None}
        for tier in written.pop("tiers", ())
    ]
    return written | {"tiers": tiers} if tiers else written


def _tier_in_micros(tier: PriceTier) -> Stored:
    return {
        name: value if name in _CONDITIONS else micros_of(value)
        for name, value in tier.model_dump(exclude_none=True).items()
    }


def _tier_in_usd(tier: Stored) -> PriceTier:
    fields: dict[str, Any] = {
        name: value if name in _CONDITIONS or value is None else usd_of(value)
        for name, value in tier.items()
    }
    return PriceTier.model_validate(fields, by_name=True)
