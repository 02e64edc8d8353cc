"""Requests that were refused because of who called or from where; the log of requests does not have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.failure import GatewayRefused
from fairlead.cli.output import print_note, show_json, show_table
from fairlead.cli.span import since_parameter

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

_PATH: Final = "/api/usage/refused-callers"
_PAGE: Final = 100
SINCE: Final = "24h"

Count = dict[str, Any]


def show_refused(instance: Instance, limit: int, *, as_json: bool) -> None:
    """Prints the newest groups of refused requests, the newest last."""
    answer = instance.get(_PATH, limit=limit)
    if as_json:
        show_json(answer)
        return
    show_table(
        ["minute", "requests", "address", "status", "request", "error"],
        [
            [
                count["minute"],
                count["requests"],
                count["address"] or "others",
                count["status"],
                f"{count['method']} {count['path']}".strip() or None,
                f"{count['kind']} {count['message']}",
            ]
            for count in reversed(answer["refused"])
        ],
        empty="No request was refused for its caller in the last seven days.",
    )


def mention_refused(instance: Instance) -> None:
    """Says how many requests of the last day are not in the log, where there are any."""
    answer = _newest_of(instance, limit=1, **{"from": since_parameter(SINCE)})
    requests = answer["requests"]
    if requests:
        what = "request was" if requests == 1 else "requests were"
        print_note(
            f"{requests:,} {what} refused in the last 24 hours because of the caller's key or address: see "
            "`fairlead logs --refused`."
        )


class RefusedFeed:
    """Groups of refused requests that were not printed before."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._printed = {_identity_of(count) for count in self._newest()}

    def fresh(self) -> list[Count]:
        """New groups, the oldest first."""
        newest = self._newest()
        found = [count for count in newest if _identity_of(count) not in self._printed]
        # Older groups are on no later page.
        self._printed = {_identity_of(count) for count in newest}
        return found[::-1]

    def _newest(self) -> list[Count]:
        refused: list[Count] = _newest_of(self._instance, limit=_PAGE)["refused"]
        return refused


def _newest_of(instance: Instance, **query: Any) -> dict[str, Any]:
    """The newest groups. A remote gateway of an earlier version has none: its route is missing."""
    try:
        return instance.get(_PATH, **query)
    except GatewayRefused as refusal:
        if refusal.status != 404:
            raise
        return {"requests": 0, "refused": []}


def _identity_of(count: Count) -> tuple[Any, ...]:
    return tuple(value for name, value in count.items() if name != "requests")
