"""Model aliases, and mappings of models to combos."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged, fingerprint
from fairlead.dashboard.undo import Undo

PLACE: Final = "/models/names"
ALIAS: Final = (
    Group(
        "An alias",
        (
            Field("alias", "Callers ask for", is_required=True, most=300, example="smart"),
            Field(
                "model",
                "And get",
                is_required=True,
                most=300,
                hint="A model with its prefix, or a combo.",
                example="openai/gpt-4o",
                suggestions="targets",
            ),
        ),
        is_open=True,
        hint="An existing alias gets the new target.",
    ),
)


async def show_names(visit: Visit) -> View:
    """Aliases, and patterns of models that combos serve."""
    aliases, mappings, combos = await asyncio.gather(
        visit.api.get("/api/models/alias"),
        visit.api.get("/api/model-combo-mappings"),
        read_all(visit.api, "/api/combos", "combos"),
    )
    wanted = visit.query.get("q", "").strip().lower()
    fields = {
        "aliases": [
            each
            for each in sorted(aliases["aliases"].items())
            if wanted in f"{each[0]} {each[1]}".lower()
        ],
        "total": aliases["total"],
        "wanted": wanted,
        "mappings": mappings["mappings"],
        "combos": {each["id"]: each["name"] for each in combos},
        "alias_form": make_form("alias", ALIAS, {}, visit.failure),
        "mapping_form": make_form(
            "map", _mapping_groups(combos), {"priority": 0, "enabled": True}, visit.failure
        ),
    }
    return View("model_names.html", fields)


async def put_alias(visit: Visit, typed: FormFields) -> str:
    """Makes the alias, or points it elsewhere."""
    body = read_values([field for group in ALIAS for field in group.fields], typed)
    await visit.api.send("POST", "/api/models/alias", body)
    return PLACE


async def confirm_drop_alias(_visit: Visit, typed: FormFields) -> Question:
    """Names what goes with an alias."""
    goes = [f"The alias {typed.get('alias', '')}: requests for it will be refused at once."]
    return Question("Delete the alias?", goes, "Delete it", f"/dashboard{PLACE}")


async def drop_alias(visit: Visit, typed: FormFields) -> str:
    """Deletes the alias."""
    await visit.api.send("DELETE", "/api/models/alias", query={"alias": typed.get("alias") or " "})
    return PLACE


async def undo_drop_alias(visit: Visit, typed: FormFields) -> Undo | None:
    """Creates the alias again."""
    alias = typed.get("alias", "")
    model = (await visit.api.get("/api/models/alias"))["aliases"].get(alias)
    if model is None:
        return None
    body = {"alias": alias, "model": model}
    return Undo("POST", "/api/models/alias", body, PLACE)


async def put_mapping(visit: Visit, typed: FormFields) -> str:
    """Makes the mapping."""
    combos = await read_all(visit.api, "/api/combos", "combos")
    await visit.api.send("POST", "/api/model-combo-mappings", _mapping_body(combos, typed))
    return PLACE


async def show_mapping(visit: Visit) -> View:
    """The form of a mapping."""
    mapping, combos = await asyncio.gather(
        visit.api.get(f"/api/model-combo-mappings/{visit.params['mapping_id']}"),
        read_all(visit.api, "/api/combos", "combos"),
    )
    seen = {SEEN: fingerprint(mapping)}
    fields = {
        "title": mapping["pattern"],
        "mapping": mapping,
        "fields": make_form("change", _mapping_groups(combos), mapping, visit.failure, **seen),
    }
    return View("model_mapping.html", fields)


async def change_mapping(visit: Visit, typed: FormFields) -> str:
    """Saves the mapping."""
    path = f"/api/model-combo-mappings/{visit.params['mapping_id']}"
    mapping, combos = await asyncio.gather(
        visit.api.get(path), read_all(visit.api, "/api/combos", "combos")
    )
    check_unchanged({SEEN: fingerprint(mapping)}, typed, SEEN)
    await visit.api.send("PUT", path, _mapping_body(combos, typed))
    return PLACE


async def confirm_drop_mapping(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a mapping."""
    mapping = await visit.api.get(f"/api/model-combo-mappings/{visit.params['mapping_id']}")
    goes = [f"The mapping of {mapping['pattern']}: its models are themselves again at once."]
    return Question("Delete the mapping?", goes, "Delete it", f"/dashboard{PLACE}")


async def drop_mapping(visit: Visit, _typed: FormFields) -> str:
    """Deletes the mapping."""
    path = f"/api/model-combo-mappings/{visit.params['mapping_id']}"
    await visit.api.send("DELETE", path)
    return PLACE


async def undo_drop_mapping(visit: Visit, _typed: FormFields) -> Undo:
    """Creates the mapping again."""
    mapping = await visit.api.get(f"/api/model-combo-mappings/{visit.params['mapping_id']}")
    names = ("pattern", "comboId", "priority", "enabled", "description")
    body = {name: mapping[name] for name in names}
    return Undo("POST", "/api/model-combo-mappings", body, PLACE)


def _mapping_groups(combos: list[dict[str, Any]]) -> tuple[Group, ...]:
    options = tuple((each["id"], each["name"]) for each in combos)
    return (
        Group(
            "A mapping",
            (
                Field(
                    "pattern",
                    "Models",
                    is_required=True,
                    most=300,
                    hint="A model, or a pattern with *.",
                    example="openai/gpt-4*",
                ),
                Field(
                    "comboId", "Are served by", "choice", options=(("", "choose a combo"), *options)
                ),
                Field("priority", "Priority", "whole", "If several match, the greatest wins."),
                Field("description", "Description", most=2000),
                Field("enabled", "In force", "switch"),
            ),
            is_open=True,
        ),
    )


def _mapping_body(combos: list[dict[str, Any]], typed: FormFields) -> dict[str, Any]:
    fields = [field for group in _mapping_groups(combos) for field in group.fields]
    body = read_values(fields, typed)
    if not body.get("comboId"):
        raise Refused(400, "Choose the combo that serves them.", "comboId")
    return {**body, "priority": body.get("priority") or 0}


PAGES = (
    Page(
        "models/names",
        "Aliases and mappings",
        show_names,
        actions={
            "alias": Action(put_alias, "The alias can be used."),
            "drop_alias": Action(
                drop_alias, "The alias was deleted.", confirm_drop_alias, undo_drop_alias
            ),
            "map": Action(put_mapping, "The mapping is in force."),
        },
    ),
    Page(
        "models/mappings/{mapping_id}",
        "Mapping",
        show_mapping,
        actions={
            "change": Action(change_mapping, "The mapping was saved and is in force."),
            "delete": Action(
                drop_mapping, "The mapping was deleted.", confirm_drop_mapping, undo_drop_mapping
            ),
        },
    ),
)
