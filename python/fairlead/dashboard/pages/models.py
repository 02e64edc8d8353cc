"""Models: what they can do and cost, other names for them, and combos in their place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from fairlead.dashboard.api import Refused, not_there
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged, fingerprint
from fairlead.dashboard.undo import Undo

PLACE: Final = "/models"
SHOWN: Final = 50
KINDS: Final = (
    "chat",
    "completion",
    "embedding",
    "image",
    "transcription",
    "speech",
    "rerank",
    "moderation",
    "ocr",
    "video",
    "realtime",
)
CAPABILITIES: Final = (
    "audio_input",
    "audio_output",
    "computer_use",
    "documents",
    "parallel_tools",
    "prompt_cache",
    "reasoning",
    "structured_output",
    "tools",
    "video_input",
    "vision",
    "web_search",
)
FILTERS: Final = ("q", "provider", "type", "capability", "connected")
PRICES: Final = (
    ("input", "Input", "1M tokens"),
    ("output", "Output", "1M tokens"),
    ("cachedInput", "Cached input", "1M tokens"),
    ("cacheWrite", "Written to a cache", "1M tokens"),
    ("cacheWriteHour", "Written for an hour", "1M tokens"),
    ("perImage", "Picture", "each"),
    ("perSecond", "Recording", "second"),
    ("perPage", "Document", "page"),
    ("perQuery", "Search or reranking", "each"),
    ("perMillionCharacters", "Read aloud", "1M characters"),
)
TIERED: Final = tuple(name for name, _, unit in PRICES if unit == "1M tokens")
PRICE: Final = (
    Group(
        "Price",
        (
            *(
                Field(
                    f"price.{name}",
                    label,
                    "decimal",
                    unit="USD each" if unit == "each" else f"USD / {unit}",
                )
                for name, label, unit in PRICES
            ),
            Field(
                "price.tiers",
                "Tiers",
                "lines",
                "One in a line: above=200000 for inputs with more tokens, or a service tier, or both; then its prices.",
                example="above=200000 input=2.5 output=15\nflex input=0.6 output=2.5",
            ),
        ),
        is_open=True,
        hint="USD. Empty: none. In force for new calls; settled ones keep their cost.",
    ),
)
SETTINGS: Final = (
    Group(
        "What is said of it",
        (
            Field("modelName", "Shown as", most=200),
            Field("isHidden", "RemainingLimit out of lists", "switch", "It can still be called."),
            Field(
                "contextWindowOverride", "Window", "whole", "Empty: as its provider says.", "tokens"
            ),
            Field(
                "maxOutputTokenOverride",
                "Output at most",
                "whole",
                "Whatever a request asks for. Empty: no cap.",
                "tokens",
            ),
        ),
        is_open=True,
    ),
)
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
        hint="One that is there already is pointed elsewhere.",
    ),
)


async def show_models(visit: Visit) -> View:
    """A page of the models that fit the filter, by provider and name."""
    chosen = {
        name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()
    }
    error = None
    page: dict[str, Any] = {"providers": [], "total": 0, "next": None}
    try:
        page = await visit.api.get(
            "/api/models/catalog", limit=SHOWN, after=visit.query.get("after"), **chosen
        )
    except Refused as refusal:
        error = refusal.message
    shared = urlencode(chosen)
    fields = {
        "rows": [
            (provider, kind, model)
            for provider in page["providers"]
            for kind, models in provider["models"].items()
            for model in models
        ],
        "total": page["total"],
        "chosen": chosen,
        "kinds": KINDS,
        "capabilities": CAPABILITIES,
        "error": error,
        "prices": await visit.api.get("/api/pricing"),
        "first": f"?{shared}" if visit.query.get("after") else None,
        "after": f"?{urlencode({'after': page['next']})}&{shared}" if page["next"] else None,
    }
    return View("models.html", fields)


async def show_model(visit: Visit) -> View:
    """A model: what it can do, its price with its tiers, what is said of it."""
    provider, name = _named(visit)
    entry, kind, owner = await _find(visit, provider, name)
    prices, rows = await asyncio.gather(
        visit.api.get("/api/pricing", provider=provider),
        visit.api.get("/api/provider-models", provider=provider),
    )
    price = (prices.get(provider) or {}).get(name)
    said = _settings_of(rows, name)
    in_force = price or entry["price"] or {}
    forms = (
        make_form(
            "price", PRICE, _flat_price(in_force), visit.failure, **{SEEN: fingerprint(price)}
        ),
        make_form("settings", SETTINGS, said, visit.failure, **{SEEN: fingerprint(said)}),
    )
    fields = {
        "title": entry["id"],
        "entry": entry,
        "kind": kind,
        "owner": owner,
        "price": in_force,
        "source": (price or {}).get("source", "catalogue" if entry["price"] else None),
        "is_set": (price or {}).get("source") == "operator",
        "said": said,
        "shown": [each for each in PRICES if in_force.get(each[0]) is not None],
        "tiered": [each for each in PRICES if each[0] in TIERED],
        "price_form": forms[0],
        "settings_form": forms[1],
        "place": f"/dashboard{PLACE}/model?{urlencode({'id': visit.query['id']})}",
    }
    return View("model.html", fields)


async def set_price(visit: Visit, typed: FormFields) -> str:
    """Sets the price as it was typed, whole."""
    provider, name = _named(visit)
    prices = await visit.api.get("/api/pricing", provider=provider)
    price = (prices.get(provider) or {}).get(name)
    check_unchanged({SEEN: fingerprint(price)}, typed, SEEN)
    values = read_values([field for group in PRICE for field in group.fields], typed)
    body = {
        field.removeprefix("price."): value for field, value in values.items() if value is not None
    }
    body["tiers"] = [_tier(line) for line in body.get("tiers") or ()]
    if len(body) == 1 and not body["tiers"]:
        raise Refused(400, "Name at least one price: 0 is for nothing.", "price.input")
    try:
        await visit.api.send("PUT", "/api/pricing", {provider: {name: body}})
    except Refused as refusal:
        raise _about_price(refusal, f"{provider}.{name}") from None
    return _place(visit)


async def ask_unset_price(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a price that was set."""
    goes = [
        f"The price that was set for {visit.query.get('id', '')}.",
        "New calls cost what is known otherwise; settled ones keep their cost.",
    ]
    return Question("Take the price back?", goes, "Take it back", f"/dashboard{_place(visit)}")


async def unset_price(visit: Visit, _typed: FormFields) -> str:
    """Takes back the price."""
    provider, name = _named(visit)
    await visit.api.send("DELETE", "/api/pricing", query={"provider": provider, "model": name})
    return _place(visit)


async def undo_unset_price(visit: Visit, _typed: FormFields) -> Undo | None:
    """Sets the price again."""
    provider, name = _named(visit)
    told = await visit.api.get("/api/pricing", provider=provider)
    price = told.get(provider, {}).get(name)
    if price is None or price["source"] != "operator":
        return None
    body = {
        field: value for field, value in price.items() if field != "source" and value is not None
    }
    return Undo("PUT", "/api/pricing", {provider: {name: body}}, _place(visit))


async def set_settings(visit: Visit, typed: FormFields) -> str:
    """Sets what is said of the model."""
    provider, name = _named(visit)
    rows = await visit.api.get("/api/provider-models", provider=provider)
    check_unchanged({SEEN: fingerprint(_settings_of(rows, name))}, typed, SEEN)
    body = read_values([field for group in SETTINGS for field in group.fields], typed)
    await visit.api.send(
        "PUT", "/api/provider-models", {"provider": provider, "modelId": name, **body}
    )
    return _place(visit)


async def ask_forget(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with what is said of a model."""
    goes = [
        f"What is said here of {visit.query.get('id', '')}; it is as its provider says again.",
        "A model that was added here is in no list any more.",
    ]
    return Question("Forget what is said of it?", goes, "Forget it", f"/dashboard{_place(visit)}")


async def forget(visit: Visit, _typed: FormFields) -> str:
    """Forgets what is said of the model."""
    provider, name = _named(visit)
    await visit.api.send(
        "DELETE", "/api/provider-models", query={"provider": provider, "model": name}
    )
    return PLACE


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
    return f"{PLACE}/names"


async def ask_drop_alias(_visit: Visit, typed: FormFields) -> Question:
    """Names what goes with an alias."""
    goes = [f"The alias {typed.get('alias', '')}: whoever asks for it is refused at once."]
    return Question("Delete the alias?", goes, "Delete it", f"/dashboard{PLACE}/names")


async def drop_alias(visit: Visit, typed: FormFields) -> str:
    """Deletes the alias."""
    await visit.api.send("DELETE", "/api/models/alias", query={"alias": typed.get("alias") or " "})
    return f"{PLACE}/names"


async def undo_drop_alias(visit: Visit, typed: FormFields) -> Undo | None:
    """Makes the alias anew."""
    alias = typed.get("alias", "")
    model = (await visit.api.get("/api/models/alias"))["aliases"].get(alias)
    if model is None:
        return None
    body = {"alias": alias, "model": model}
    return Undo("POST", "/api/models/alias", body, f"{PLACE}/names")


async def put_mapping(visit: Visit, typed: FormFields) -> str:
    """Makes the mapping."""
    combos = await read_all(visit.api, "/api/combos", "combos")
    await visit.api.send("POST", "/api/model-combo-mappings", _mapping_body(combos, typed))
    return f"{PLACE}/names"


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
    return f"{PLACE}/names"


async def ask_drop_mapping(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a mapping."""
    mapping = await visit.api.get(f"/api/model-combo-mappings/{visit.params['mapping_id']}")
    goes = [f"The mapping of {mapping['pattern']}: its models are themselves again at once."]
    return Question("Delete the mapping?", goes, "Delete it", f"/dashboard{PLACE}/names")


async def drop_mapping(visit: Visit, _typed: FormFields) -> str:
    """Deletes the mapping."""
    path = f"/api/model-combo-mappings/{visit.params['mapping_id']}"
    await visit.api.send("DELETE", path)
    return f"{PLACE}/names"


async def undo_drop_mapping(visit: Visit, _typed: FormFields) -> Undo:
    """Makes the mapping anew."""
    mapping = await visit.api.get(f"/api/model-combo-mappings/{visit.params['mapping_id']}")
    names = ("pattern", "comboId", "priority", "enabled", "description")
    body = {name: mapping[name] for name in names}
    return Undo("POST", "/api/model-combo-mappings", body, f"{PLACE}/names")


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
                Field("priority", "Priority", "whole", "Of several, the greatest holds."),
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


def _named(visit: Visit) -> tuple[str, str]:
    """The provider's id and the model's name, of the address."""
    provider, _, name = visit.query.get("id", "").partition("/")
    if not provider or not name:
        raise not_there("model")
    return provider, name


def _place(visit: Visit) -> str:
    return f"{PLACE}/model?{urlencode({'id': visit.query.get('id', '')})}"


async def _find(
    visit: Visit, provider: str, name: str
) -> tuple[dict[str, Any], str, dict[str, Any]]:
    answer = await visit.api.get("/api/models/catalog", provider=provider, q=name[:200])
    for owner in answer["providers"]:
        wanted = f"{owner['prefix']}/{name}"
        for kind, models in owner["models"].items():
            for entry in models:
                if entry["id"] == wanted:
                    return entry, kind, owner
    raise not_there("model")


def _settings_of(rows: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The settings of a model; empty where an operator has set none."""
    both = [*rows["models"], *rows["modelCompatOverrides"]]
    return next((row for row in both if row["modelId"] == name), {})


def _flat_price(price: Mapping[str, Any]) -> dict[str, Any]:
    tiers = [_tier_line(tier) for tier in price.get("tiers") or ()]
    return {"price": {**price, "tiers": tiers}}


def _tier_line(tier: Mapping[str, Any]) -> str:
    words = [str(tier["service"])] if tier.get("service") else []
    names = ("above", *TIERED)
    words += [f"{name}={tier[name]:g}" for name in names if tier.get(name) is not None]
    return " ".join(words)


def _tier(line: str) -> dict[str, Any]:
    tier: dict[str, Any] = {}
    for word in line.split():
        name, sign, value = word.partition("=")
        try:
            if not sign:
                tier["service"] = name
            elif name == "above":
                tier[name] = int(value)
            elif name in TIERED:
                tier[name] = float(value)
            else:
                raise ValueError
        except ValueError:
            raise Refused(
                400,
                f"`{word[:40]}` is no part of a tier: write above=200000 input=2.5, or flex input=1.",
                "price.tiers",
            ) from None
    return tier


def _about_price(refusal: Refused, prefix: str) -> Refused:
    """A refusal whose field is named as the form names it."""
    param = refusal.param or ""
    rest = param.removeprefix(prefix).lstrip(".")
    first = rest.partition(".")[0].partition("[")[0]
    return Refused(refusal.status, refusal.message, f"price.{first}" if first else "price.input")


PAGES = (
    Page("models", "Models", show_models, group="Set up", rank=4, icon="models"),
    Page(
        "models/model",
        "Model",
        show_model,
        actions={
            "price": Action(set_price, "The price was set: new calls cost it."),
            "unset": Action(
                unset_price, "The price was taken back.", ask_unset_price, undo_unset_price
            ),
            "settings": Action(set_settings, "It was saved."),
            "forget": Action(forget, "What was said of it is forgotten.", ask_forget),
        },
    ),
    Page(
        "models/names",
        "Aliases and mappings",
        show_names,
        actions={
            "alias": Action(put_alias, "The alias can be asked for."),
            "drop_alias": Action(
                drop_alias, "The alias was deleted.", ask_drop_alias, undo_drop_alias
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
                drop_mapping, "The mapping was deleted.", ask_drop_mapping, undo_drop_mapping
            ),
        },
    ),
)
