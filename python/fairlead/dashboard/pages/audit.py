"""The audit log: who changed what through the management API, and what it was before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from fairlead.dashboard.api import Refused
from fairlead.dashboard.audit_sentence import sentence_of
from fairlead.dashboard.form import Options
from fairlead.dashboard.page import Page, View, Visit

SHOWN: Final = 50
FILTERS: Final = ("actor", "actorId", "method", "route", "requestId", "outcome", "from", "until")
ACTORS: Final[Options] = (
    ("", "anybody"),
    ("session", "a person"),
    ("token", "an access token"),
    ("key", "an API key"),
    ("local", "the command line"),
    ("anonymous", "nobody signed in"),
)
OUTCOMES: Final[Options] = (
    ("", "any"),
    ("done", "done"),
    ("refused", "refused"),
    ("failed", "failed"),
)
METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
MOODS: Final = {"done": "good", "refused": "warn", "failed": "bad"}
VALUE_MAX: Final = 4_000


@dataclass(frozen=True, slots=True)
class Change:
    """A field of a record with its values as JSON; None where it was not there."""

    field: str
    before: str | None
    after: str | None


async def show(visit: Visit) -> View:
    """A page of the log: what fits the filter, newest first."""
    chosen = {
        name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()
    }
    after = visit.query.get("after")
    wrong: Refused | None = None
    answer: dict[str, Any] = {"entries": [], "next": None}
    try:
        answer = await visit.api.get("/api/audit", limit=SHOWN, after=after, **_moments(chosen))
    except Refused as refusal:
        wrong = refusal
    shared = urlencode(chosen)
    following = answer["next"]
    fields = {
        "entries": [
            (
                each,
                sentence_of(each),
                [_change(one) for one in each["changes"]],
                _json(each["sent"]),
            )
            for each in answer["entries"]
        ],
        "chosen": chosen,
        "next": f"?{urlencode({'after': following})}&{shared}" if following else None,
        "newest": f"?{shared}" if after else None,
        "wrong": wrong,
        "actors": ACTORS,
        "actor_words": dict(ACTORS),
        "outcomes": OUTCOMES,
        "methods": METHODS,
        "moods": MOODS,
    }
    return View("audit.html", fields)


def _moments(chosen: dict[str, str]) -> dict[str, str]:
    """The filter as the API takes it: a time without a zone, as browsers send it, is UTC."""
    return {
        name: f"{value}:00Z" if name in ("from", "until") and len(value) == 16 else value
        for name, value in chosen.items()
    }


def _change(change: dict[str, Any]) -> Change:
    return Change(change["field"], _json(change["before"]), _json(change["after"]))


def _json(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]} … ({len(text):,} characters)"


PAGES = (Page("audit", "Audit log", show, group="Operate", rank=2, icon="audit"),)
