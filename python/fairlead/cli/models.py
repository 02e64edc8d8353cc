"""`fairlead models`: what can be called."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import pick, show_json, show_table


def models(
    text: Annotated[str | None, typer.Argument(help="Only models with this in their name.")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List the models that the credential may call."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = instance.get("/v1/models")["data"]
    if text is not None:
        found = [model for model in found if text.lower() in str(model["id"]).lower()]
    if as_json:
        show_json({"object": "list", "data": found})
        return
    show_table(
        ["model", "provider"],
        [pick(model, "id", "owned_by") for model in found],
        empty="There are no such models: `fairlead providers add <provider>` adds a provider's.",
    )
