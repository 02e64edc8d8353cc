"""Prices in dollars and as they are stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.gateway.providers.price import (
    SERVICE_TIERS,
    TOKEN_KINDS,
    ModelPrice,
    PriceTier,
    in_micros,
    in_snapshot,
    in_usd,
)

# Whole micro-dollars, so that nothing is rounded.
usd = st.integers(0, 10**9).map(lambda micros: micros / 1_000_000)
rates = st.dictionaries(st.sampled_from(TOKEN_KINDS), usd, min_size=1)
conditions = st.tuples(
    st.none() | st.sampled_from(SERVICE_TIERS), st.none() | st.integers(1, 10**9)
).filter(lambda pair: pair != (None, None))


@st.composite
def prices(draw: st.DrawFn) -> ModelPrice:
    own = draw(st.lists(conditions, unique=True, max_size=4))
    tiers = [
        PriceTier.model_validate({"service": service, "above": above, **draw(rates)}, by_name=True)
        for service, above in own
    ]
    return ModelPrice.model_validate({**draw(rates), "tiers": tiers}, by_name=True)


@given(prices())
def test_a_price_comes_back_as_it_was_set(price: ModelPrice) -> None:
    again = ModelPrice.model_validate(in_usd(in_micros(price)), by_name=True)
    assert again.model_dump() == price.model_dump()


@given(prices())
def test_the_snapshot_has_whole_micro_dollars_and_no_nulls_in_tiers(price: ModelPrice) -> None:
    written = in_snapshot(in_micros(price))
    assert ("tiers" in written) == bool(price.tiers)
    for tier in written.get("tiers", ()):
        assert all(value is not None for value in tier.values())
        assert all(isinstance(tier[name], int) for name in TOKEN_KINDS if name in tier)


def test_an_older_price_has_no_tiers() -> None:
    stored = {"input": 1_000_000, "output": 2_000_000, "cached_input": None, "cache_write": None}
    told = in_usd(stored)
    assert told["tiers"] == []
    assert told["input"] == 1.0
    assert in_snapshot(stored) == stored
