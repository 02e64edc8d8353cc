"""`fairlead quota`: what providers have left for each connection, and how far keys are in their limits."""

from __future__ import annotations

from typing import Any

from fairlead.cli.names import provider_names
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json, show_table


def quota(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """Show what providers and keys have left."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = instance.get("/api/rate-limits")
        names = {} if as_json else provider_names(instance)
    if as_json:
        show_json(found)
        return
    show_table(
        ["connection", "provider", "state", "last minute", "tokens", "limit", "left", "resets"],
        [row for each in found["connections"] for row in _connection_rows(each, names)],
        empty="There are no connections: add one with `fairlead providers add <provider>`.",
    )
    if found["keys"]:
        show_table(
            ["key", "used", "limit", "each", "resets"],
            [
                [key["name"], rule["used"], rule["limit"], f"{rule['window']} s", rule["resetsAt"]]
                for key in found["keys"]
                for rule in key["rules"]
            ],
            empty="",
        )


def _connection_rows(each: dict[str, Any], names: dict[str, str]) -> list[list[Any]]:
    """A row for each limit that the provider names; one without, where it names none."""
    known = [
        each["name"],
        names.get(each["provider"], each["provider"]),
        each["state"],
        each["requestsLastMinute"],
        each["tokensLastMinute"],
    ]
    rows = [
        [*known, window["name"], f"{window['remainingPercent']:.0f} %", window["resetsAt"]]
        for window in each["windows"]
    ]
    return rows or [[*known, None, None, None]]
