"""Changes of the configuration as marks on charts over time, from the audit log."""

from __future__ import annotations

from typing import Any, Final

from fairlead.dashboard import figures
from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.audit_sentence import sentence_of
from fairlead.dashboard.chart import Mark
from fairlead.dashboard.window import BUCKET_MS, Window
from fairlead.moment import now_ms

# The newest changes that are read, and those that a chart shows.
READ: Final = 200
SHOWN: Final = 12
HOLDS_MS: Final = 30_000
METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
# Routes that decide where a request goes, whether it is accepted, and how it is changed.
ROUTES: Final = (
    "/api/combos",
    "/api/context",
    "/api/guardrails",
    "/api/model-combo-mappings",
    "/api/models",
    "/api/pricing",
    "/api/provider-models",
    "/api/provider-nodes",
    "/api/providers",
    "/api/settings",
)
# The ends of routes that change nothing.
QUESTIONS: Final = ("test", "ping", "simulate", "preview", "validate", "usage", "authorize")


async def read_changes(api: Api, window: Window) -> list[Mark]:
    """The newest changes within a window, oldest first; none for a visitor who may not read the audit log."""

    async def read(api: Api) -> list[dict[str, Any]]:
        bounds = {"from": window.bounds[0], "until": window.bounds[1]}
        try:
            answer = await api.get("/api/audit", outcome="done", limit=READ, **bounds)
        except Refused:
            return []
        entries: list[dict[str, Any]] = answer["entries"]
        return [entry for entry in entries if is_change(entry)][:SHOWN]

    start = window.from_ms // BUCKET_MS["minute"]
    end = "" if window.is_open else str(window.until_ms)
    name = f"changes {start} {end} {now_ms() // HOLDS_MS}"
    return marks_of(await api.cached_for_a_while(name, read), window)


def is_change(entry: dict[str, Any]) -> bool:
    """Whether an entry of the audit log changed the configuration of requests."""
    path: str = entry["path"].rstrip("/")
    return (
        entry["method"] in METHODS
        and any(path == route or path.startswith(f"{route}/") for route in ROUTES)
        and path.rpartition("/")[2] not in QUESTIONS
    )


def marks_of(entries: list[dict[str, Any]], window: Window) -> list[Mark]:
    """The marks of these entries, which are newest first, in the columns of a window."""
    starts = window.starts()
    length = len(starts) * BUCKET_MS[window.bucket]
    found = []
    for entry in reversed(entries):
        at_ms = figures.parse_time(entry["at"]).timestamp() * 1000
        place = (at_ms - starts[0]) / length * 100
        if 0 <= place <= 100:
            words = f"{figures.moment(entry['at'])} UTC: {sentence_of(entry).words}"
            found.append(Mark(place, words, f"/dashboard/audit?requestId={entry['requestId']}"))
    return found
