"""The facts in force for one model, each with its value and who states it.

The order is that of the relay: the catalogue's provider, its first family that fits, the operator's node, connection
and model. A later one overrides an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from fairlead.gateway.models.table import ProviderModel
from fairlead.gateway.providers.catalogue import CatalogueProvider
from fairlead.gateway.providers.endpoint import Provider, endpoint_of
from fairlead.gateway.providers.fact_tables import base_table, catalogue_facts
from fairlead.gateway.providers.facts import Facts, FactSection, FamilyFacts
from fairlead.gateway.providers.stated_facts import relay_facts
from fairlead.gateway.providers.table import Connection

Origin = Literal[
    "default", "name", "catalogue", "family", "provider", "node", "connection", "model"
]
# `source` is no fact, and whether refused members are stripped follows from who refuses them.
NAMES: Final = tuple(
    name for name in Facts.model_fields if name not in ("source", "strips_refused")
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: its name and value as the relay has them, who states it, and where that is written. `patterns` are
    those of a family.
    """

    name: str
    value: Any
    origin: Origin
    source: str | None = None
    patterns: tuple[str, ...] = ()


def facts_in_force(
    provider: Provider, connection: Connection | None, row: ProviderModel | None, model_id: str
) -> list[Fact]:
    """Every fact about a model, in the order of the record; one that nobody states has the origin `default`."""
    base = _base(provider, connection, model_id)
    facts = {name: Fact(name, None, "default") for name in NAMES}
    for level in (*_catalogued(base, model_id), *_stated(provider, connection, row)):
        for name, fact in level.items():
            if name in facts:
                facts[name] = fact
    return list(facts.values())


def _base(provider: Provider, connection: Connection | None, model_id: str) -> str:
    """The id of the catalogue's facts about the model; empty where it has none."""
    if not isinstance(provider, CatalogueProvider) or not provider.apis:
        return base_table(provider)
    if connection is None:
        at = next((at for at, api in enumerate(provider.apis) if api.has(model_id)), None)
        if at is None:
            return base_table(provider)
        return "" if provider.apis[at].facts is None else f"{provider.id}#{at}"
    endpoint = endpoint_of(provider, connection.auth_type, connection.provider_specific)
    api = next((api for api in endpoint.apis if api.section.has(model_id)), None)
    return base_table(provider) if api is None else api.facts


def _catalogued(base: str, model_id: str) -> Iterator[dict[str, Fact]]:
    """The catalogue's facts about the provider, then about the model's family. A provider inherits from the one
    that `like` names.
    """
    chain: list[FactSection] = []
    name: str | None = base or None
    while name is not None:
        chain.append(catalogue_facts(name))
        name = chain[-1].like
    for section in reversed(chain):
        yield _written(section, "catalogue")
    families = (family for section in chain for family in section.families)
    for family in families:
        if any(fnmatchcase(model_id.lower(), pattern.lower()) for pattern in family.models):
            yield {
                name: replace(fact, patterns=family.models)
                for name, fact in _written(family, "family").items()
            }
            return


def _written(section: FactSection | FamilyFacts, origin: Origin) -> dict[str, Fact]:
    values = section.model_dump(mode="json", exclude_none=True, include=set(NAMES))
    return {name: Fact(name, value, origin, section.source) for name, value in values.items()}


def _stated(
    provider: Provider, connection: Connection | None, row: ProviderModel | None
) -> Iterator[dict[str, Fact]]:
    """The operator's facts, from the node to the model."""
    if not isinstance(provider, CatalogueProvider):
        yield _by_operator(provider.stated, "node", f"PUT /api/provider-nodes/{provider.id}")
    if connection is not None:
        path = f"PUT /api/providers/{connection.id}"
        yield _by_operator(connection.provider_specific, "connection", path)
    if row is not None:
        yield _by_operator(row.settings, "model", "PUT /api/provider-models")


def _by_operator(stated: Mapping[str, Any], origin: Origin, route: str) -> dict[str, Fact]:
    facts = relay_facts(stated)
    return {name: Fact(name, value, origin, route) for name, value in facts.items()}
