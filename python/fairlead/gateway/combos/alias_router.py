"""`/api/models/alias`: other names for models and combos."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.combos.alias_table import all_aliases, delete_alias, find_alias, set_alias
from fairlead.gateway.combos.fields import PREFIX
from fairlead.gateway.combos.table import find_combo_by_name
from fairlead.gateway.fields import Spelled, Text
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/models/alias", tags=["models"])

MAX_ALIASES = 1_000

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
async def list_all(services: ServicesDep) -> AliasList:
    """Every alias with what it stands for."""
    aliases = await services.state.read(all_aliases)
    return AliasList(aliases=aliases, total=len(aliases))


@router.post("", summary="Make an alias, or point it elsewhere")
async def create(new: Alias, services: ServicesDep) -> Alias:
    """The alias can be asked for when this returns."""

    def store(con: Connection) -> None:
        _check(con, new)
        set_alias(con, new.alias, new.model, now_ms())

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


def _check(con: Connection, new: Alias) -> None:
    if find_combo_by_name(con, new.alias) is not None:
        raise Conflict(
            f"alias `{new.alias}` is the name of a combo: choose another.", param="alias"
        )
    if new.model == new.alias or find_alias(con, new.model) is not None:
        raise InvalidRequest(
            f"model `{new.model}` is itself an alias: name what that one stands for.", param="model"
        )
    aliases = all_aliases(con)
    if new.alias not in aliases and len(aliases) >= MAX_ALIASES:
        raise Conflict(f"There are {MAX_ALIASES} aliases, which is the limit: delete one first.")
    chained = [alias for alias, target in aliases.items() if target == new.alias]
    if chained:
        raise Conflict(
            f"alias `{new.alias}` is what the alias `{chained[0]}` stands for: point that one at "
            f"`{new.model}` first.",
            param="alias",
        )
    is_combo = find_combo_by_name(con, new.model.removeprefix(PREFIX)) is not None
    is_auto = new.model == "auto" or new.model.startswith("auto/")
    if not is_combo and not is_auto and (new.model.startswith(PREFIX) or "/" not in new.model):
        raise InvalidRequest(
            f"model `{new.model}` is neither a model with its provider prefix "
            "(`<prefix>/<model>`) nor a combo: make the combo first.",
            param="model",
        )
