"""Entries of the audit log as sentences; the actor and the time have separate columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fairlead.dashboard.audit_words import ACTS, ATTEMPTS

Entry = Mapping[str, Any]
_VERBS: Final = {"POST": "Created", "PUT": "Changed", "PATCH": "Changed", "DELETE": "Deleted"}
# The things of the API by the beginning of their routes, the longest first.
_THINGS: Final = {
    "/api/keys": "key",
    "/api/providers": "connection",
    "/api/provider-nodes": "endpoint",
    "/api/provider-models": "model",
    "/api/search-providers": "search provider",
    "/api/combos": "combo",
    "/api/context/combos": "compression pipeline",
    "/api/context": "compression settings",
    "/api/groups": "group",
    "/api/users": "person",
    "/api/tokens": "access token",
    "/api/webhooks": "webhook",
    "/api/settings/mail": "mail server",
    "/api/settings/proxy": "outbound proxy",
    "/api/settings": "settings",
    "/api/pricing": "prices",
    "/api/models/alias": "model alias",
    "/api/model-combo-mappings": "model mapping",
    "/api/models": "model",
    "/api/guardrails": "guardrails",
    "/api/resilience": "circuit breakers",
    "/api/cache": "response cache",
    "/api/agent-skills": "agent",
    "/api/usage/token-limits": "token limit",
    "/api/files": "file",
    "/api/batches": "batch",
    "/api/sites": "saved site",
    "/api/oauth": "sign-in at a provider",
}
# The ends of routes that do something with a thing.
_ACTS: Final = {
    "test": "Tested",
    "ping": "Tested",
    "redeliver": "Sent a delivery again of",
    "replay": "Sent deliveries again of",
    "regenerate": "Rotated",
    "rotate-secret": "Rotated the secret of",
    "secret": "Rotated the secret of",
    "reset": "Reset",
    "simulate": "Simulated",
}
_VALUE_MAX: Final = 60


class Sentence(NamedTuple):
    """Words about an entry, and the fields that it changed as `name: before -> after`."""

    words: str
    changes: tuple[str, ...]


def sentence_of(entry: Entry) -> Sentence:
    """The sentence; an entry of a route that is not known here says its method and path."""
    route = entry["route"] or entry["path"]
    changes = tuple(filter(None, map(_change, entry["changes"])))
    if (act := ACTS.get(f"{entry['method']} {route}")) is not None:
        return Sentence(_of_whom(entry, act), changes)
    place = max((each for each in _THINGS if _is_below(route, each)), key=len, default=None)
    if place is None:
        return Sentence(f"{entry['method']} {entry['path']}", ())
    last = route.rstrip("/").rpartition("/")[2]
    thing, name = _THINGS[place], _name_of(entry)
    verb = _ACTS.get(last) if last != place.rpartition("/")[2] else None
    verb = verb or _VERBS.get(entry["method"], entry["method"])
    words = f"{verb} {thing}" + (f" {name}" if name else "")
    return Sentence(words, changes)


def _of_whom(entry: Entry, act: str) -> str:
    """The act and the name of its thing. A sign-in names the address that was given, whoever gave it."""
    name = _name_of(entry)
    if act not in ATTEMPTS:
        return f"{act} {name}" if name else act
    words = act if entry.get("outcome", "done") == "done" else ATTEMPTS[act]
    return f"{words} as {name}" if name else words


def label_of(field: str) -> str:
    """A field's JSON name as words: `scrapeRequestsPerMinute` is `scrape requests per minute`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", field).replace("_", " ").lower()
    return re.sub(r"\busd\b", "USD", words)


def _is_below(route: str, place: str) -> bool:
    return route == place or route.startswith(f"{place}/")


def _name_of(entry: Entry) -> str:
    """The thing's name, where the body or the record before has one."""
    for each in (*entry["changes"], {"field": "", "before": None, "after": None}):
        if each["field"] in ("name", "displayName"):
            return _short(each["before"] or each["after"])
    sent = entry["sent"] if isinstance(entry["sent"], Mapping) else {}
    before = entry.get("before") if isinstance(entry.get("before"), Mapping) else {}
    for record in (before or {}, sent):
        for member in ("displayName", "name", "alias", "email", "url"):
            if isinstance(record.get(member), str) and record[member]:
                return _short(record[member])
    return ""


def _change(change: Mapping[str, Any]) -> str | None:
    """A change of a plain value; longer ones are shown below the sentence."""
    values = (change["before"], change["after"])
    if any(isinstance(each, Mapping | list) for each in values):
        return label_of(change["field"])
    before, after = ("nothing" if each is None else _short(each) for each in values)
    return f"{label_of(change['field'])}: {before} \N{RIGHTWARDS ARROW} {after}"


def _short(value: Any) -> str:
    text = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
    text = str(text)
    return text if len(text) <= _VALUE_MAX else f"{text[: _VALUE_MAX - 1]}…"
