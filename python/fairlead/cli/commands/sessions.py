"""`fairlead sessions`: callers' sessions of the last minutes."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.cli.money import total
from fairlead.cli.names import key_names, provider_names
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import pick, show_json, show_table


def sessions(
    minutes: Annotated[
        int, typer.Option(min=1, max=1440, help="How many minutes to look back.")
    ] = 30,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show sessions with a finished request in the last minutes, newest first."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = instance.get("/api/sessions", minutes=minutes)
        names = {} if as_json else provider_names(instance) | key_names(instance)
    if as_json:
        show_json(found)
        return
    show_table(
        ["session", "key", "model", "provider", "requests", "errors", "cost", "last"],
        [
            [
                each["sessionId"],
                names.get(each["keyId"], each["keyId"]),
                each["model"],
                names.get(each["provider"], each["provider"]),
                *pick(each, "requests", "errors"),
                total(each),
                each["lastSeen"],
            ]
            for each in found["sessions"]
        ],
        empty="No session had a request in this time.",
    )
