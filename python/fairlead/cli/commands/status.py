"""`fairlead status`: readiness and health of the running instance, and its nodes where there may be several."""

from __future__ import annotations

from typing import Any

import typer

from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json, show_table


def status(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """Show whether the gateway is ready, and the state of its parts. Exit code 1 if it is not ready."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        code, readiness = instance.probe("/readyz")
        ready = code == 200
        health = instance.get("/api/monitoring/health") if ready else {}
        cluster = instance.get("/api/cluster") if ready else {}
    if as_json:
        show_json(
            {
                "url": instance.url,
                "ready": ready,
                "readiness": readiness,
                "health": health,
                "cluster": cluster,
            }
        )
    else:
        rows: list[list[Any]] = [["url", instance.url], ["ready", ready]]
        for name, value in (readiness | health).items():
            if not isinstance(value, dict | list):
                rows.append([name, value])
        if store := readiness.get("shared_store"):
            rows.append(["shared store", store["state"]])
        show_table(["what", "state"], rows, empty="")
        if cluster.get("store") == "postgresql":
            _show_nodes(cluster)
    if not ready:
        raise typer.Exit(1)


def _show_nodes(cluster: dict[str, Any]) -> None:
    newest = cluster["snapshotVersion"]
    rows = []
    for node in cluster["nodes"]:
        report = node["report"] or {}
        work = ", ".join(f"{count} {kind}" for kind, count in report.get("work", {}).items())
        rows.append(
            [
                f"{node['host']}{' (this)' if node['isThis'] else ''}",
                report.get("role", "all"),
                node["version"],
                "draining" if report.get("draining") else report.get("fault") or "serves",
                report.get("workers"),
                report.get("inFlight"),
                newest - node["snapshotVersion"],
                report.get("usageBehind"),
                work,
            ]
        )
        rows += [_relay_row(relay, newest) for relay in report.get("relays", [])]
    titles = [
        "role",
        "version",
        "state",
        "workers",
        "in flight",
        "snapshots behind",
        "usage behind",
    ]
    print()
    show_table(["node", *titles, "work"], rows, empty="")
    if not cluster["complete"]:
        print("The database does not answer: other nodes are not known.")


def _relay_row(relay: dict[str, Any], newest: int) -> list[Any]:
    """A node with the role `relay`; its segments that are left are usage which no control has."""
    behind = newest - relay["snapshotVersion"]
    left = relay["segmentsLeft"]
    return [
        relay["host"],
        "relay",
        relay["version"],
        "serves",
        relay["workers"],
        "",
        behind,
        left,
        "",
    ]
