"""`providerSpecificData` in its stored form: the fields that are set, money as integer
micro-dollars.
"""

from __future__ import annotations

from typing import Any

from fairlead.gateway.providers.fields import ModelPrice, ProviderSpecific
from fairlead.money import micros_of, usd_of


def merge_specific(stored: dict[str, Any], sent: ProviderSpecific) -> dict[str, Any]:
    """The stored form after a change: fields that were not sent stay, null clears."""
    merged = dict(stored)
    for name in sent.model_fields_set:
        value = getattr(sent, name)
        if value is None:
            merged.pop(name, None)
        elif name == "prices":
            merged[name] = {model: _micros(price) for model, price in value.items()}
        elif name == "timeouts":
            merged[name] = value.model_dump(exclude_none=True)
        else:
            merged[name] = value
    return merged


def show_specific(stored: dict[str, Any]) -> ProviderSpecific:
    """The stored form in the API's form."""
    shown = dict(stored)
    if "prices" in shown:
        shown["prices"] = {model: _usd(price) for model, price in shown["prices"].items()}
    return ProviderSpecific.model_validate(shown, by_name=True)


def _micros(price: ModelPrice) -> dict[str, int | None]:
    return {
        name: None if usd is None else micros_of(usd) for name, usd in price.model_dump().items()
    }


def _usd(price: dict[str, int | None]) -> dict[str, float | None]:
    return {name: None if micros is None else usd_of(micros) for name, micros in price.items()}
