"""`/api/models/alias`: other names for models and combos."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from fairlead.errors import NotFound
from fairlead.gateway.combos.alias_rules import put_alias
from fairlead.gateway.combos.alias_table import all_aliases, delete_alias
from fairlead.gateway.fields import Spelled, Text
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/models/alias", tags=["models"])

AliasName = Annotated[
    Text,
    Field(min_length=1, max_length=300),
    Spelled(
        r"(?!combo/)(?!auto(/|$))[^\x00-\x20\x7f*]+",
        "must be without blanks, control characters and `*`, and not begin with `combo/` "
        "or be of `auto`",
    ),
]
Target = Annotated[
    Text,
    Field(min_length=1, max_length=300),
    Spelled(r"[^\x00-\x1f\x7f*]+", "must be without control characters and `*`"),
]


class Alias(Wire):
    """`alias` may be asked for in place of `model`: a model with its prefix, or a combo."""

    alias: AliasName
    model: Target


class AliasList(Wire):
    aliases: dict[str, str]
    total: int


class AliasDeleted(Wire):
    success: bool = True


@router.get("", summary="List model aliases")
async def list_all(
    services: ServicesDep,
    alias: Annotated[str | None, Query(min_length=1, max_length=300)] = None,
) -> AliasList:
    """Every alias with its model, or the one that `alias` names."""
    aliases = await services.state.read(all_aliases)
    if alias is not None:
        if alias not in aliases:
            raise NotFound("There is no alias with this name.", param="alias")
        aliases = {alias: aliases[alias]}
    return AliasList(aliases=aliases, total=len(aliases))


@router.put("", summary="Make an alias, or point it elsewhere")
@router.post("", summary="Make an alias, or point it elsewhere")
async def create(new: Alias, services: ServicesDep) -> Alias:
    """The alias can be used when this returns."""

    def store(con: Connection) -> None:
        put_alias(con, new.alias, new.model)

    await services.state.commit(store)
    return new


@router.delete("", summary="Delete an alias")
async def delete(
    services: ServicesDep, alias: Annotated[str, Query(min_length=1, max_length=300)]
) -> AliasDeleted:
    """The alias is refused when this returns."""

    def delete_row(con: Connection) -> None:
        if not delete_alias(con, alias):
            raise NotFound("There is no alias with this name.", param="alias")

    await services.state.commit(delete_row)
    return AliasDeleted()
