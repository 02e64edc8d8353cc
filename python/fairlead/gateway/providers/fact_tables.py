"""The section `facts` of the snapshot: what models accept, by the catalogue and by operators.

A connection names a table. Connections with the same facts share one: that of their provider in the catalogue, or
one with the overrides of an operator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.gateway.models.table import ProviderModel
from fairlead.gateway.providers.catalogue import CatalogueProvider, catalogue
from fairlead.gateway.providers.endpoint import Provider
from fairlead.gateway.providers.facts import FactSection, in_snapshot
from fairlead.gateway.providers.stated_facts import relay_facts

# A node's models are taken for those of the maker of its dialect. The plain form of OpenAI's dialects has no
# such maker: many servers speak them.
_MAKERS: Final = {"anthropic-compatible": "anthropic", "gemini-compatible": "gemini"}
_DIGEST_CHARS: Final = 12


@dataclass(frozen=True, slots=True)
class Overrides:
    """The facts that an operator states for a connection: for all of its models, and for single ones."""

    all: dict[str, Any]
    models: dict[str, dict[str, Any]]

    @property
    def digest(self) -> str:
        """A part of the table's id; empty without overrides."""
        if not self.all and not self.models:
            return ""
        text = orjson.dumps([self.all, self.models], option=orjson.OPT_SORT_KEYS)
        return f"~{hashlib.sha256(text).hexdigest()[:_DIGEST_CHARS]}"


def overrides_of(
    provider: Provider, specific: Mapping[str, Any], rows: Mapping[str, ProviderModel]
) -> Overrides:
    """The overrides of a connection's models. A connection overrides its node, a model overrides both."""
    own = {} if isinstance(provider, CatalogueProvider) else relay_facts(provider.stated)
    models = {name: relay_facts(row.settings) for name, row in rows.items()}
    return Overrides(
        {**own, **relay_facts(specific)}, {name: facts for name, facts in models.items() if facts}
    )


def base_table(provider: Provider) -> str:
    """The provider in the catalogue whose facts hold for this one; empty where there is none."""
    if isinstance(provider, CatalogueProvider):
        return provider.id if provider.facts is not None else ""
    return _MAKERS.get(provider.type, "")


def catalogue_facts(name: str) -> FactSection:
    """The catalogue's facts with this id: of a provider, or of one of its APIs (`<provider>#<position>`)."""
    provider, _, api = name.partition("#")
    section = catalogue()[provider].apis[int(api)].facts if api else catalogue()[provider].facts
    if section is None:
        raise ValueError(f"the catalogue has no facts of `{name}`")
    return section


class FactTables:
    """The tables of one snapshot, by their ids."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, Any]] = {}

    def add(self, base: str, overrides: Overrides) -> str:
        """Adds a table of the catalogue with these overrides, and returns its id; empty without any facts."""
        name = base + overrides.digest
        if name and name not in self._tables:
            table = in_snapshot(catalogue_facts(base), catalogue_facts) if base else {}
            if overrides.digest:
                table["overrides"] = {"all": overrides.all, "models": overrides.models}
            self._tables[name] = table
        return name

    def named(self, connections: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The tables that these connections and their APIs name."""
        names = {each["facts"] for each in connections}
        names |= {api["facts"] for each in connections for api in each["apis"]}
        return {name: self._tables[name] for name in sorted(names - {""})}
