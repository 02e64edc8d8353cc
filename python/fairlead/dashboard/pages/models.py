"""Models: what they can do and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from fairlead.dashboard.api import Refused, not_there
from fairlead.dashboard.fact_fields import FACTS, FIELDS, form_values, read_facts
from fairlead.dashboard.form import (
    Field,
    Group,
    decimal_number,
    make_form,
    read_values,
    whole_number,
)
from fairlead.dashboard.model_settings import (
    CAPABILITIES,
    KINDS,
    SETTINGS,
    fact_rows,
    read_settings,
    settings_values,
)
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged, fingerprint
from fairlead.dashboard.undo import Undo

PLACE: Final = "/models"
SHOWN: Final = 50
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
        hint="USD. Empty: none. Applies to new calls; settled ones keep their cost.",
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
    """A model: its capabilities, its price with its tiers, its facts in force, its overrides."""
    provider, name = _named(visit)
    entry, kind, owner = await _find(visit, provider, name)
    prices, rows, facts = await asyncio.gather(
        visit.api.get("/api/pricing", provider=provider),
        visit.api.get("/api/provider-models", provider=provider),
        visit.api.get("/api/provider-models/facts", provider=provider, model=name),
    )
    stated, silent = fact_rows(facts)
    price = (prices.get(provider) or {}).get(name)
    settings = _settings_of(rows, name)
    in_force = price or entry["price"] or {}
    forms = (
        make_form(
            "price", PRICE, _flat_price(in_force), visit.failure, **{SEEN: fingerprint(price)}
        ),
        make_form(
            "settings",
            SETTINGS,
            settings_values(settings),
            visit.failure,
            **{SEEN: fingerprint(settings)},
        ),
        make_form(
            "facts", FACTS, form_values(settings), visit.failure, **{SEEN: fingerprint(settings)}
        ),
    )
    fields = {
        "title": entry["id"],
        "entry": entry,
        "kind": kind,
        "owner": owner,
        "price": in_force,
        "source": (price or {}).get("source", "catalogue" if entry["price"] else None),
        "is_set": (price or {}).get("source") == "operator",
        "settings": settings,
        "shown": [each for each in PRICES if in_force.get(each[0]) is not None],
        "tiered": [each for each in PRICES if each[0] in TIERED],
        "price_form": forms[0],
        "settings_form": forms[1],
        "facts_form": forms[2],
        "facts": stated,
        "silent": silent,
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
    return _page_url(visit)


async def confirm_unset_price(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a price that was set."""
    goes = [
        f"The price that was set for {visit.query.get('id', '')}.",
        "New calls use the catalogue's price; settled ones keep their cost.",
    ]
    return Question("Remove the price?", goes, "Remove", f"/dashboard{_page_url(visit)}")


async def unset_price(visit: Visit, _typed: FormFields) -> str:
    """Takes back the price."""
    provider, name = _named(visit)
    await visit.api.send("DELETE", "/api/pricing", query={"provider": provider, "model": name})
    return _page_url(visit)


async def undo_unset_price(visit: Visit, _typed: FormFields) -> Undo | None:
    """Sets the price again."""
    provider, name = _named(visit)
    prices = await visit.api.get("/api/pricing", provider=provider)
    price = prices.get(provider, {}).get(name)
    if price is None or price["source"] != "operator":
        return None
    body = {
        field: value for field, value in price.items() if field != "source" and value is not None
    }
    return Undo("PUT", "/api/pricing", {provider: {name: body}}, _page_url(visit))


async def set_settings(visit: Visit, typed: FormFields) -> str:
    """Sets the overrides of the model."""
    provider, name = _named(visit)
    rows = await visit.api.get("/api/provider-models", provider=provider)
    check_unchanged({SEEN: fingerprint(_settings_of(rows, name))}, typed, SEEN)
    body = read_settings(typed)
    await visit.api.send(
        "PUT", "/api/provider-models", {"provider": provider, "modelId": name, **body}
    )
    return _page_url(visit)


async def set_facts(visit: Visit, typed: FormFields) -> str:
    """Sets the facts of the model that differ from the stored ones."""
    provider, name = _named(visit)
    settings = _settings_of(await visit.api.get("/api/provider-models", provider=provider), name)
    check_unchanged({SEEN: fingerprint(settings)}, typed, SEEN)
    changed = read_facts(read_values(FIELDS, typed), settings)
    if changed:
        await visit.api.send(
            "PUT", "/api/provider-models", {"provider": provider, "modelId": name, **changed}
        )
    return _page_url(visit)


async def confirm_forget(visit: Visit, _typed: FormFields) -> Question:
    """Names what is deleted with the overrides of a model."""
    goes = [
        f"The overrides for {visit.query.get('id', '')}; the provider's values apply again.",
        "A model that was added here is in no list any more.",
    ]
    return Question("Delete the overrides?", goes, "Delete them", f"/dashboard{_page_url(visit)}")


async def forget(visit: Visit, _typed: FormFields) -> str:
    """Deletes the overrides of the model."""
    provider, name = _named(visit)
    await visit.api.send(
        "DELETE", "/api/provider-models", query={"provider": provider, "model": name}
    )
    return PLACE


def _named(visit: Visit) -> tuple[str, str]:
    """The provider's id and the model's name, of the address."""
    provider, _, name = visit.query.get("id", "").partition("/")
    if not provider or not name:
        raise not_there("model")
    return provider, name


def _page_url(visit: Visit) -> str:
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
                tier[name] = whole_number(value)
            elif name in TIERED:
                tier[name] = decimal_number(value)
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
    Page("models", "Models", show_models, group="Build", rank=2, icon="models"),
    Page(
        "models/model",
        "Model",
        show_model,
        actions={
            "price": Action(set_price, "The price was set: new calls cost it."),
            "unset": Action(
                unset_price, "The price was removed.", confirm_unset_price, undo_unset_price
            ),
            "settings": Action(set_settings, "It was saved."),
            "facts": Action(set_facts, "The facts were saved."),
            "forget": Action(forget, "The overrides were deleted.", confirm_forget),
        },
    ),
)
