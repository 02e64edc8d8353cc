"""Filters of pages about requests: what a page's address asks for, shown as chips that can be removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

from fairlead.dashboard.names import Names

LABELS: Final[Mapping[str, str]] = {
    "search": "Search",
    "keyId": "Key",
    "groupId": "Group",
    "tag": "Tag",
    "model": "Model",
    "provider": "Provider",
    "connectionId": "Connection",
    "combo": "Combo",
    "endpoint": "Endpoint",
    "session": "Session",
    "sessionTag": "Session tag",
    "sessionId": "Session id",
    "outcome": "Outcome",
    "status": "Status",
    "errorKind": "Reason",
    "errorText": "Message contains",
    "requestId": "Request id",
}
"""The filters of the log, by the names that the API has for them."""
OF_SUMS: Final = tuple(name for name in LABELS if name not in ("search", "errorText", "requestId"))
"""Those by which sums are filtered too."""


class Chip(NamedTuple):
    """A filter that is in force, and the page without it."""

    label: str
    value: str
    without: str


def filters_of(query: Mapping[str, str], names: Iterable[str] = LABELS) -> dict[str, str]:
    """The filters that an address asks for."""
    return {name: query[name].strip() for name in names if query.get(name, "").strip()}


def chips_of(
    chosen: Mapping[str, str], address: Mapping[str, str], names: Names, words: Mapping[str, str]
) -> list[Chip]:
    """A chip for each filter; `address` has the other parameters of the page, `words` those of outcomes."""
    found = []
    for name, value in chosen.items():
        rest = {other: text for other, text in chosen.items() if other != name}
        shown = _value(name, value, names, words)
        found.append(Chip(LABELS[name], shown, f"?{urlencode({**address, **rest})}"))
    return found


def _value(name: str, value: str, names: Names, words: Mapping[str, str]) -> str:
    if name == "keyId":
        return names.key(value)
    if name == "groupId":
        return names.group(value)
    if name == "connectionId":
        return names.connection(value)
    if name == "provider":
        return names.provider(value)
    if name == "outcome":
        return words.get(value, value)
    return value.replace("_", " ").lower() if name == "errorKind" else value
