"""`fairlead status`: readiness and health of the running instance."""

from __future__ import annotations

from typing import Any

import typer

from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json, show_table


def status(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """Say whether the gateway is ready and how its parts are; exit code 1 if it is not."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        code, readiness = instance.probe("/readyz")
        ready = code == 200
        health = instance.get("/api/monitoring/health") if ready else {}
    if as_json:
        show_json({"url": instance.url, "ready": ready, "readiness": readiness, "health": health})
    else:
        rows: list[list[Any]] = [["url", instance.url], ["ready", ready]]
        for name, value in (readiness | health).items():
            if not isinstance(value, dict | list):
                rows.append([name, value])
        show_table(["what", "state"], rows, empty="")
    if not ready:
        raise typer.Exit(1)
