"""The type, the accepted calls, the capabilities and the sizes of one model, each with who states it: lists and
routes follow them.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.gateway.models.table import ProviderModel
from fairlead.gateway.providers.catalogue import CatalogueProvider
from fairlead.gateway.providers.endpoint import Provider
from fairlead.gateway.providers.facts_in_force import Fact, Origin
from fairlead.gateway.providers.model_types import type_of
from fairlead.gateway.providers.models import (
    NODE_TYPES,
    catalogue_models,
    override_model,
    typed,
    with_stated,
)
from fairlead.gateway.providers.table import Connection

# The API's names, by those of a model.
_NAMES: Final = {
    "mode": "type",
    "endpoints": "supportedEndpoints",
    "capabilities": "capabilities",
    "context_length": "contextLength",
    "max_output_tokens": "maxOutputTokens",
}


def uses_in_force(
    provider: Provider, connection: Connection | None, row: ProviderModel | None, model_id: str
) -> list[Fact]:
    """The known uses of the model. A value that nobody states has the origin `default`."""
    shipped = _entry(catalogue_models(provider), model_id)
    listed = _entry((connection and connection.models) or [], model_id)
    both = {**shipped, **listed, "id": model_id}
    able = {*shipped.get("capabilities", ()), *listed.get("capabilities", ())}
    if able:
        both["capabilities"] = sorted(able)
    if listed.get("mode") == "chat":
        # Many lists say it about every model.
        both["mode"] = shipped.get("mode") or "chat"
    model = override_model(provider, row, typed(provider, both))
    levels = _levels(provider, row, shipped, listed, model_id)
    facts = []
    for name, shown in _NAMES.items():
        origin, source = next(
            ((origin, source) for origin, source, level in levels if level.get(name) is not None),
            ("default", None),
        )
        value = model.get(name)
        if name == "mode":
            value = value or "chat"
        facts.append(Fact(shown, value, origin, source))
    facts.append(_vision(facts[list(_NAMES).index("capabilities")]))
    return facts


def _levels(
    provider: Provider,
    row: ProviderModel | None,
    shipped: dict[str, Any],
    listed: dict[str, Any],
    model_id: str,
) -> list[tuple[Origin, str | None, dict[str, Any]]]:
    """Who states what about the model, the one that takes precedence first."""
    levels: list[tuple[Origin, str | None, dict[str, Any]]] = []
    if row is not None:
        levels.append(
            ("model", "PUT /api/provider-models", with_stated(provider, row.settings, {}))
        )
    if isinstance(provider, CatalogueProvider):
        source: str | None = provider.source
    else:
        source = None
        own = {"api_type": provider.api_type} if provider.api_type in NODE_TYPES else {}
        stated = with_stated(provider, {**own, **provider.stated}, {})
        levels.append(("node", f"PUT /api/provider-nodes/{provider.id}", stated))
    by_name = type_of(model_id)
    without_chat = {**listed, "mode": None} if listed.get("mode") == "chat" else listed
    levels.append(("provider", "the provider's list of models", without_chat))
    levels.append(("catalogue", source, shipped))
    levels.append(("name", None, {"mode": by_name}))
    return levels


def _entry(models: list[dict[str, Any]], model_id: str) -> dict[str, Any]:
    return next((dict(each) for each in models if each["id"] == model_id), {})


def _vision(capabilities: Fact) -> Fact:
    value = None if capabilities.value is None else "vision" in capabilities.value
    return Fact("supportsVision", value, capabilities.origin, capabilities.source)
