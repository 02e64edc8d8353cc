"""Search over the console: pages, keys, connections, combos, groups, models, settings and requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.names import Names, read_all, read_names
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.pages.settings import GROUPS as SETTINGS
from fairlead.dashboard.registry import navigation

# Pages that are shown of each kind.
SHOWN: Final = 8
WORDS_MAX: Final = 200


class Hit(NamedTuple):
    """A page that was found."""

    href: str
    words: str
    about: str = ""


class Kind(NamedTuple):
    """The pages of one kind that were found."""

    title: str
    hits: list[Hit]


async def show(visit: Visit) -> View:
    """Everything that matches the words; every page without words."""
    words = visit.query.get("q", "").strip()[:WORDS_MAX]
    found = [_kind("Pages", _pages(), words)]
    if words:
        names, combos, models = await asyncio.gather(
            read_names(visit.api), _read_combos(visit.api), _read_models(visit.api, words)
        )
        found += [
            *_named(names, words),
            _kind("Combos", (Hit(f"/dashboard/combos/{id_}", name) for id_, name in combos), words),
            Kind("Models", models),
            _kind("Settings", _settings(), words),
            Kind("Requests", _requests(words)),
        ]
    else:
        found = [Kind("Pages", list(_pages()))]
    fields = {"found": [kind for kind in found if kind.hits], "words": words, "title": "Search"}
    return View("find.html", fields)


def _kind(title: str, hits: Iterable[Hit], words: str) -> Kind:
    """The pages whose words or explanation contain every word, those that begin with them first."""
    wanted = words.lower().split()
    matching = [
        hit for hit in hits if all(word in f"{hit.words} {hit.about}".lower() for word in wanted)
    ]
    matching.sort(key=lambda hit: not hit.words.lower().startswith(words.lower()))
    return Kind(title, matching[:SHOWN])


def _pages() -> Iterable[Hit]:
    for group, pages in navigation():
        for page in pages:
            yield Hit(page.address, page.title, group)


def _named(names: Names, words: str) -> list[Kind]:
    return [
        _kind(title, (Hit(f"/dashboard/{path}/{id_}", name) for id_, name in known.items()), words)
        for title, path, known in (
            ("Keys", "keys", names.keys),
            ("Connections", "providers", names.connections),
            ("Groups", "groups", names.groups),
        )
    ]


def _settings() -> Iterable[Hit]:
    for group in SETTINGS:
        for field in group.fields:
            yield Hit(
                f"/dashboard/settings#f-{field.name.replace('.', '-')}", field.label, group.title
            )


def _requests(words: str) -> list[Hit]:
    query = urlencode({"search": words, "window": "30d"})
    return [Hit(f"/dashboard/logs?{query}", f"Requests with “{words}”", "reason or id, 30 days")]


async def _read_combos(api: Api) -> list[tuple[str, str]]:
    async def read(api: Api) -> list[dict[str, Any]]:
        return await read_all(api, "/api/combos", "combos")

    return [(each["id"], each["name"]) for each in await api.cached("combos", read)]


async def _read_models(api: Api, words: str) -> list[Hit]:
    try:
        page = await api.get("/api/models/catalog", limit=SHOWN, q=words)
    except Refused:
        return []
    found = []
    for provider in page["providers"]:
        for kind, models in provider["models"].items():
            for model in models:
                name = model["id"][len(provider["prefix"]) + 1 :]
                query = urlencode({"id": f"{provider['id']}/{name}"})
                found.append(Hit(f"/dashboard/models/model?{query}", model["id"], kind))
    return found[:SHOWN]


PAGES = (Page("find", "Search", show),)
