"""`providerSpecificData` in its stored form: the fields that are set, money as integer
micro-dollars.
"""

from __future__ import annotations

from typing import Any

from fairlead.gateway.providers.fields import ProviderSpecific
from fairlead.gateway.providers.price import in_micros, in_usd
from fairlead.gateway.providers.stated_facts import merge_facts


def merge_specific(stored: dict[str, Any], sent: ProviderSpecific) -> dict[str, Any]:
    """The stored form after a change: fields that were not sent stay, null clears."""
    merged = dict(stored)
    for name in sent.model_fields_set:
        value = getattr(sent, name)
        if value is None or (name == "deployments" and not value):
            merged.pop(name, None)
        elif name == "prices":
            merged[name] = {model: in_micros(price) for model, price in value.items()}
        elif name == "facts":
            facts = merge_facts(stored.get(name), value, "providerSpecificData.facts")
            merged[name] = facts
            if facts is None:
                del merged[name]
        elif name == "timeouts":
            merged[name] = value.model_dump(exclude_none=True)
        else:
            merged[name] = value
    return merged


def show_specific(stored: dict[str, Any]) -> ProviderSpecific:
    """The stored form in the API's form."""
    shown = dict(stored)
    if "prices" in shown:
        shown["prices"] = {model: in_usd(price) for model, price in shown["prices"].items()}
    return ProviderSpecific.model_validate(shown, by_name=True)
