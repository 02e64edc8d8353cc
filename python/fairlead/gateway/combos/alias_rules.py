"""Rules for the name of an alias and for the model that it stands for."""

from __future__ import annotations

from typing import Final

from fairlead.errors import Conflict, InvalidRequest
from fairlead.gateway.combos.alias_table import all_aliases, find_alias, set_alias
from fairlead.gateway.combos.fields import PREFIX
from fairlead.gateway.combos.table import find_combo_by_name
from fairlead.moment import now_ms
from fairlead.store.file import Connection

MAX_ALIASES: Final = 1_000


def put_alias(con: Connection, alias: str, model: str) -> None:
    """Makes an alias or points it elsewhere, in the writer. Raises `Conflict` and `InvalidRequest`."""
    if find_combo_by_name(con, alias) is not None:
        raise Conflict(f"alias `{alias}` is the name of a combo: choose another.", param="alias")
    if model == alias or find_alias(con, model) is not None:
        raise InvalidRequest(
            f"model `{model}` is itself an alias: name what that one stands for.", param="model"
        )
    aliases = all_aliases(con)
    if alias not in aliases and len(aliases) >= MAX_ALIASES:
        raise Conflict(f"There are {MAX_ALIASES} aliases, which is the limit: delete one first.")
    chained = [name for name, target in aliases.items() if target == alias]
    if chained:
        raise Conflict(
            f"alias `{alias}` is what the alias `{chained[0]}` stands for: point that one at "
            f"`{model}` first.",
            param="alias",
        )
    is_combo = find_combo_by_name(con, model.removeprefix(PREFIX)) is not None
    is_auto = model == "auto" or model.startswith("auto/")
    if not is_combo and not is_auto and (model.startswith(PREFIX) or "/" not in model):
        raise InvalidRequest(
            f"model `{model}` is neither a model with its provider prefix "
            "(`<prefix>/<model>`) nor a combo: make the combo first.",
            param="model",
        )
    set_alias(con, alias, model, now_ms())
