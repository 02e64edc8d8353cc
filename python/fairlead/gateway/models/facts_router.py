"""`GET /api/provider-models/facts`: what is in force for one model, and who states it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from pydantic.alias_generators import to_camel

from fairlead.errors import NotFound
from fairlead.gateway.models.table import find_model
from fairlead.gateway.providers.endpoint import dialect_of, resolve_provider
from fairlead.gateway.providers.facts_in_force import Fact, Origin, facts_in_force
from fairlead.gateway.providers.table import Connection, connections_of, find_connection
from fairlead.gateway.providers.uses_in_force import uses_in_force
from fairlead.store.file import Connection as Database
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/provider-models/facts", tags=["models"])

# Facts that an operator states by a field with another name.
_FIELDS = {"refused": "refuses"}


class FactView(Wire):
    """One fact: its value, null for the plain form of the dialect; who states it; and where. `patterns` are those
    of the family, for the origin `family`.
    """

    name: str = Field(description="As in the body of `PUT /api/provider-models`.")
    value: Any | None
    origin: Origin
    source: str | None
    patterns: list[str] | None


class ModelFacts(Wire):
    """`uses` are what lists and routes go by, `facts` what requests are written by."""

    provider: str
    model_id: str
    dialect: str
    connection_id: str | None
    uses: list[FactView]
    facts: list[FactView]


@router.get("", summary="The facts in force for a model, with their origin")
async def read(
    services: ServicesDep,
    provider: Annotated[str, Query(min_length=1, max_length=200)],
    model: Annotated[str, Query(min_length=1, max_length=300)],
    connection_id: Annotated[
        str | None,
        Query(
            alias="connectionId",
            max_length=200,
            description="The connection whose overrides count; by default the provider's most preferred one.",
        ),
    ] = None,
) -> ModelFacts:
    """A model that is in no list has facts, too: those of its family and its provider."""

    def read_facts(con: Database) -> ModelFacts:
        owner = resolve_provider(con, provider)
        connection = _connection(con, owner.id, connection_id)
        row = find_model(con, owner.id, model)
        return ModelFacts.model_construct(
            provider=owner.id,
            model_id=model,
            dialect=dialect_of(owner),
            connection_id=None if connection is None else connection.id,
            uses=[_view(fact) for fact in uses_in_force(owner, connection, row, model)],
            facts=[_view(fact) for fact in facts_in_force(owner, connection, row, model)],
        )

    return await services.state.read(read_facts)


def _connection(con: Database, provider: str, wanted: str | None) -> Connection | None:
    if wanted is not None:
        connection = find_connection(con, wanted)
        if connection is None or connection.provider != provider:
            raise NotFound("The provider has no connection with this id.", param="connectionId")
        return connection
    active = [each for each in connections_of(con, provider) if each.is_active]
    return min(active, key=lambda each: (each.priority, each.id), default=None)


def _view(fact: Fact) -> FactView:
    return FactView.model_construct(
        name=_FIELDS.get(fact.name) or to_camel(fact.name),
        value=fact.value,
        origin=fact.origin,
        source=fact.source,
        patterns=list(fact.patterns) or None,
    )
