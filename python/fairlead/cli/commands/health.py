"""`fairlead health`: workers, connections and background tasks of the running gateway."""

from __future__ import annotations

from typing import Any

import typer

from fairlead.cli.names import provider_names
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import pick, print_message, show_json, show_table


def health(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """Show the state of the gateway's parts. Exit code 1 unless it is healthy."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = instance.get("/api/monitoring/health")
        names = {} if as_json else provider_names(instance)
    if as_json:
        show_json(found)
    else:
        _print(found, names)
    if found["status"] != "healthy":
        raise typer.Exit(1)


def _print(found: dict[str, Any], names: dict[str, str]) -> None:
    print_message(
        f"{found['status']}: version {found['version']}, up {found['uptimeSeconds']:.0f} s, "
        f"{found['memoryBytes'] / 2**20:.0f} MiB."
    )
    for database, fault in found["storage"].items():
        if fault is not None:
            print_message(f"The database {database} fails: {fault}")
    show_table(
        ["worker", "live", "in flight", "streams", "requests", "turned away", "config"],
        [
            pick(
                worker,
                "id",
                "live",
                "inFlight",
                "openStreams",
                "requestsTotal",
                "shedTotal",
                "appliedVersion",
            )
            for worker in found["workers"]
        ],
        empty="No relay worker is connected.",
    )
    show_table(
        ["connection", "provider", "state", "reason", "until", "last error", "ms"],
        [
            [
                each["name"],
                names.get(each["provider"], each["provider"]),
                *pick(each, "state", "reason", "until", "lastError"),
                None if each["latencyMs"] is None else f"{each['latencyMs']:.0f}",
            ]
            for each in found["connectionHealth"]
        ],
        empty="No connection has been used yet.",
    )
    down = [task for task in found["tasks"] if not task["running"]]
    for task in down:
        print_message(f"The background task {task['name']} is down: {task['lastError']}")
