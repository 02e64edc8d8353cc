"""Providers: connections with their credentials, and custom endpoints."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

import orjson

from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.connection_form import (
    DEPLOYMENTS,
    REFUSES,
    USAGE_KEY,
    change_groups,
    new_groups,
)
from fairlead.dashboard.connection_state import connection_state_of
from fairlead.dashboard.fact_fields import shown_list, typed_list
from fairlead.dashboard.form import (
    changed_values,
    decimal_number,
    dig,
    make_form,
    nested,
    read_values,
)
from fairlead.dashboard.names import read_all
from fairlead.dashboard.order import moved, named_order
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.provider_facts import (
    KEY_PAGES,
    SECTIONS,
    section_of,
)
from fairlead.dashboard.recent_failures import read_recent
from fairlead.dashboard.record import SEEN, check_unchanged
from fairlead.dashboard.window import read_groups, window_of

PLACE: Final = "/providers"
MODELS_SHOWN: Final = 300
# Priorities go from 1 to this.
MOVABLE_MAX: Final = 100
# The built-in providers never change while the gateway runs.
_built_in: dict[str, str] = {}


async def read_providers(api: Api) -> dict[str, str]:
    """The names of providers by id: custom endpoints, then the built-in ones."""
    nodes = await read_all(api, "/api/provider-nodes", "nodes")
    own = {each["id"]: each["name"] for each in nodes}
    if not _built_in:
        answer = await api.get("/api/models/catalog")
        _built_in.update(
            {each["id"]: each["name"] for each in answer["providers"] if each["asOf"] is not None}
        )
    return {**own, **_built_in}


async def show_providers(visit: Visit) -> View:
    """Every connection with its state, and the endpoints."""
    window = window_of({}, "24h")
    connections, nodes, rows, resilience, recent = await asyncio.gather(
        read_all(visit.api, "/api/providers", "connections"),
        read_all(visit.api, "/api/provider-nodes", "nodes"),
        read_groups(visit.api, "connection", **window.query),
        visit.api.get("/api/resilience"),
        read_recent(visit.api),
    )
    fields = {
        "connections": sorted(connections, key=_place_of),
        "nodes": nodes,
        "names": {each["id"]: each["name"] for each in nodes},
        "used": {row["connectionId"]: row for row in rows},
        "connection_states": {
            each["id"]: connection_state_of(
                each["state"], each["provider"], resilience["breakers"], recent.failing
            )
            for each in connections
        },
        "is_ordered": 1 < len(connections) <= MOVABLE_MAX
        and visit.api.may("POST", "/api/providers/reorder"),
    }
    return View("providers.html", fields)


async def reorder(visit: Visit, typed: FormFields) -> str:
    """Moves a connection by one place, or puts all in the order that was dragged."""
    connections = await read_all(visit.api, "/api/providers", "connections")
    ids = [each["id"] for each in sorted(connections, key=_place_of)]
    order = moved(ids, typed) if "move" in typed else named_order(typed)
    await visit.api.send("POST", "/api/providers/reorder", {"connectionIds": order})
    return PLACE


def _place_of(connection: dict[str, Any]) -> tuple[int, str]:
    return connection["priority"], connection["name"].lower()


async def show_choice(visit: Visit) -> View:
    """The first step: whose connection it is to be."""
    providers = await read_providers(visit.api)
    wanted = visit.query.get("q", "").strip().lower()
    by_section: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
    for id_, name in sorted(providers.items(), key=lambda each: each[1].lower()):
        if wanted in f"{id_} {name}".lower():
            by_section[section_of(id_, is_own=id_ not in _built_in)].append((id_, name))
    sections = [(title, tiles) for title, tiles in by_section.items() if tiles]
    return View("provider_choice.html", {"sections": sections, "wanted": wanted})


async def show_new(visit: Visit) -> View:
    """The second step: the credential, which is checked before it is stored."""
    provider = visit.params["provider"]
    names = await read_providers(visit.api)
    if provider not in names:
        raise Refused(404, "There is no such provider. Choose one of the list.")
    values = {"name": names[provider], "priority": 50, "isActive": True}
    groups = new_groups(provider, is_refused=visit.failure is not None)
    form = make_form("create", groups, values, visit.failure)
    fields = {
        "fields": form,
        "name": names[provider],
        "key_page": KEY_PAGES.get(provider),
        "title": f"Add {names[provider]}",
        "can_sign_in": await read_sign_in(visit.api, provider) is not None,
    }
    return View("provider_new.html", fields)


async def show_provider(visit: Visit) -> View:
    """A connection: its state, what it serves, its form."""
    connection_id = visit.params["connection_id"]
    answer, names = await asyncio.gather(
        visit.api.get(f"/api/providers/{connection_id}"), read_providers(visit.api)
    )
    models, limits, provider_usage, sign_in, resilience, recent = await asyncio.gather(
        visit.api.get(f"/api/providers/{connection_id}/models"),
        visit.api.get("/api/rate-limits", connectionId=connection_id),
        visit.api.get(f"/api/providers/{connection_id}/usage"),
        read_sign_in(visit.api, answer["connection"]["provider"]),
        visit.api.get("/api/resilience"),
        read_recent(visit.api),
    )
    now = next(iter(limits["connections"]), None)
    connection = answer["connection"]
    specific = connection["providerSpecificData"]
    shown = {
        **connection,
        "quotaWindowThresholds": _shown_percents(connection),
        "providerSpecificData": {**specific, "refuses": shown_list(specific["refuses"])},
    }
    groups = change_groups(connection["provider"])
    form = make_form("change", groups, shown, visit.failure, **{SEEN: connection["updatedAt"]})
    fields = {
        "connection": connection,
        "provider": names.get(connection["provider"], connection["provider"]),
        "fields": form,
        "models": models["models"][:MODELS_SHOWN],
        "model_count": len(models["models"]),
        "model_source": models["source"],
        "windows": now["windows"] if now else [],
        "in_flight": now["inFlight"] if now else 0,
        "connection_state": connection_state_of(
            connection["state"], connection["provider"], resilience["breakers"], recent.failing
        ),
        "provider_usage": provider_usage,
        "amounts": [amounts_of(each) for each in provider_usage["usage"]["figures"]],
        "usage_key": make_form("usage_key", USAGE_KEY, {}, visit.failure),
        "can_sign_in": sign_in is not None and connection["authType"] in ("oauth", "none"),
        "title": connection["displayName"] or connection["name"],
    }
    return View("provider.html", fields)


async def read_sign_in(api: Api, provider: str) -> dict[str, Any] | None:
    """How people sign in at a provider with a browser; None where a client or an address for that is missing."""
    try:
        settings: dict[str, Any] = await api.get(f"/api/oauth/{provider}/settings")
    except Refused:
        return None
    section = settings["section"]
    needed = ("clientId", "authorizationUrl", "tokenUrl")
    return settings if all(section[name] for name in needed) else None


def amounts_of(figure: dict[str, Any]) -> dict[str, Any]:
    """A provider's figure as it is shown, exact to what it told; what it did not tell is None."""
    names = ("used", "limit", "remaining")
    texts = {name: _amount(figure[f"{name}Micros"], figure["unit"]) for name in names}
    return {**figure, **texts}


def _amount(micros: int | None, unit: str) -> str | None:
    if micros is None:
        return None
    whole, part = divmod(abs(micros), 1_000_000)
    digits = f"{part:06d}".rstrip("0")
    shown = f"{whole:,}" + (f".{digits.ljust(2, '0')}" if digits else "")
    return f"{'-' if micros < 0 else ''}{shown} {unit}"


async def create(visit: Visit, typed: FormFields) -> str:
    """Tries the credential, then stores it."""
    provider = visit.params["provider"]
    form_fields = [field for group in new_groups(provider) for field in group.fields]
    values = {name: value for name, value in read_values(form_fields, typed).items() if value}
    if REFUSES in values:
        values[REFUSES] = typed_list(values[REFUSES])
    store_anyway = values.pop("storeAnyway", False)
    values["isActive"] = "isActive" in typed
    if account := values.pop("serviceAccount", None):
        values["serviceAccount"] = _account("\n".join(account))
    body = nested({**values, "provider": provider})
    finding = await visit.api.send("POST", "/api/providers/validate", body)
    if not finding["valid"] and not store_anyway:
        raise Refused(400, f"The provider did not take it: {finding['error']}", "apiKey")
    made = await visit.api.send("POST", "/api/providers", body)
    connection_id = made["connection"]["id"]
    if finding["valid"]:
        # So that its page has the finding. The connection is stored whatever becomes of this.
        with contextlib.suppress(Refused):
            await visit.api.send("POST", f"/api/providers/{connection_id}/test")
    return f"{PLACE}/{connection_id}"


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs; a credential only where one was typed."""
    path = f"/api/providers/{visit.params['connection_id']}"
    connection = (await visit.api.get(path))["connection"]
    check_unchanged(connection, typed)
    groups = change_groups(connection["provider"])
    form_fields = [field for group in groups for field in group.fields]
    values = read_values(form_fields, typed)
    if values.get("quotaWindowThresholds") == _shown_percents(connection):
        del values["quotaWindowThresholds"]
    if REFUSES in values:
        values[REFUSES] = typed_list(values[REFUSES])
    if values.get(DEPLOYMENTS) == (dig(connection, DEPLOYMENTS) or {}):
        del values[DEPLOYMENTS]
    key = values.pop("apiKey", None)
    changed = changed_values(values, connection)
    if "quotaWindowThresholds" in changed:
        changed["quotaWindowThresholds"] = _percents(values["quotaWindowThresholds"])
    if key:
        changed["apiKey"] = key
    if changed:
        await visit.api.send("PUT", path, nested(changed))
    return f"{PLACE}/{connection['id']}"


async def test(visit: Visit, _typed: FormFields) -> str:
    """Asks the provider; what it finds is on the page of the connection."""
    connection_id = visit.params["connection_id"]
    await visit.api.send("POST", f"/api/providers/{connection_id}/test")
    return f"{PLACE}/{connection_id}"


async def fetch_usage(visit: Visit, _typed: FormFields) -> str:
    """Asks the provider what is used and left; what it tells is on the page of the connection."""
    connection_id = visit.params["connection_id"]
    await visit.api.send("POST", f"/api/providers/{connection_id}/usage")
    return f"{PLACE}/{connection_id}"


async def set_usage_key(visit: Visit, typed: FormFields) -> str:
    """Stores the key that the provider's usage route asks for; an empty one forgets it."""
    connection_id = visit.params["connection_id"]
    values = read_values([field for group in USAGE_KEY for field in group.fields], typed)
    await visit.api.send("PUT", f"/api/providers/{connection_id}/usage", values)
    return f"{PLACE}/{connection_id}"


async def sign_in(visit: Visit, _typed: FormFields) -> View:
    """Begins a sign-in for this connection, and shows the way to the provider."""
    path = f"/api/providers/{visit.params['connection_id']}"
    connection = (await visit.api.get(path))["connection"]
    return await _begin_sign_in(visit, connection["provider"], {"connectionId": connection["id"]})


async def sign_in_anew(visit: Visit, typed: FormFields) -> View:
    """Begins a sign-in for a new connection."""
    name = typed.get("name", "").strip()
    return await _begin_sign_in(visit, visit.params["provider"], {"name": name} if name else {})


async def _begin_sign_in(visit: Visit, provider: str, target: dict[str, str]) -> View:
    begun = await visit.api.send("POST", f"/api/oauth/{provider}/authorize", target)
    settings = await visit.api.get(f"/api/oauth/{provider}/settings")
    names = await read_providers(visit.api)
    # A link, since the console's own rules let no form lead to another site.
    fields = {
        "name": names.get(provider, provider),
        "url": begun["authorizationUrl"],
        "comes_back": settings["section"]["redirectUri"] is None,
        "callback": settings["callbackUrl"],
        "title": f"Sign in at {names.get(provider, provider)}",
    }
    return View("provider_sign_in.html", fields)


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a connection."""
    found = (await visit.api.get(f"/api/providers/{visit.params['connection_id']}"))["connection"]
    goes = [
        f"The connection {found['name']}, and its credential {found['apiKey'] or ''}".strip(),
        "Requests that only it can serve are refused from then on.",
        "Its usage stays in the log.",
    ]
    page_url = f"/dashboard{PLACE}/{found['id']}"
    return Question(f"Delete the connection {found['name']}?", goes, "Delete it", page_url)


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Deletes the connection."""
    await visit.api.send("DELETE", f"/api/providers/{visit.params['connection_id']}")
    return PLACE


def _shown_percents(connection: dict[str, Any]) -> dict[str, str]:
    """The percent of each window as a form has it."""
    percents = connection["quotaWindowThresholds"] or {}
    return {name: f"{percent:g}" for name, percent in percents.items()}


def _percents(typed: dict[str, str]) -> dict[str, float] | None:
    """The per cent of each window; None without a value."""
    try:
        percents = {name: decimal_number(text.removesuffix("%")) for name, text in typed.items()}
        return percents or None
    except ValueError:
        raise Refused(
            400,
            "Kept back must be lines of `window = percent`, such as `five_hour = 10`.",
            "quotaWindowThresholds",
        ) from None


def _account(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Refused(
            400, "The service account must be the JSON of its key file.", "serviceAccount"
        ) from None


PAGES = (
    Page(
        "providers",
        "Providers",
        show_providers,
        group="Access",
        rank=2,
        icon="providers",
        actions={
            "reorder": Action(reorder, "The order was saved."),
        },
    ),
    Page("providers/new", "Add a provider", show_choice),
    Page(
        "providers/new/{provider}",
        "Add a provider",
        show_new,
        actions={
            "create": Action(create, "The connection was checked and stored."),
            "sign_in": Action(sign_in_anew, "The sign-in was started."),
        },
    ),
    Page(
        "providers/{connection_id}",
        "Connection",
        show_provider,
        actions={
            "change": Action(change, "The connection was saved."),
            "test": Action(test, "It was tested: the finding is below."),
            "usage": Action(fetch_usage, "The provider's figures were read; they are below."),
            "usage_key": Action(set_usage_key, "The key for its usage was saved."),
            "sign_in": Action(sign_in, "The sign-in was started."),
            "delete": Action(delete, "The connection was deleted.", confirm_delete),
        },
    ),
)
