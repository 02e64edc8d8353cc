"""`fairlead models`: the models that can be called."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json, show_table
from fairlead.text.near_names import did_you_mean


def models(
    text: Annotated[
        str | None, typer.Argument(help="List only models with this in their name.")
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(help="List only models of this provider, by the prefix of their names."),
    ] = None,
    type_: Annotated[
        str | None,
        typer.Option("--type", help="List only models of this type, such as chat or embedding."),
    ] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List the models that the credential may call."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        every = instance.get("/v1/models")["data"]
    found = [
        model
        for model in every
        if (text is None or text.lower() in str(model["id"]).lower())
        and provider in (None, _provider(model))
        and type_ in (None, model.get("type"))
    ]
    if as_json:
        show_json({"object": "list", "data": found})
        return
    show_table(
        ["model", "provider", "type", "context", "max output"],
        [
            [
                model["id"],
                _provider(model),
                model.get("type"),
                model.get("context_length"),
                model.get("max_output_tokens"),
            ]
            for model in found
        ],
        empty=_why_none(every, text, provider),
    )


def _provider(model: dict[str, Any]) -> str | None:
    """The prefix under which a model is called; None for an alias that has none."""
    prefix, slash, _ = str(model["id"]).partition("/")
    return prefix if slash else None


def _why_none(every: list[dict[str, Any]], text: str | None, provider: str | None) -> str:
    prefixes = {prefix for model in every if (prefix := _provider(model)) is not None}
    if provider is not None and provider not in prefixes:
        near = did_you_mean(provider, prefixes)
        return f"No model has the prefix {provider}/.{near}"
    near = did_you_mean(text or "", (str(model["id"]) for model in every))
    return f"There are no such models.{near} `fairlead providers add <provider>` adds a provider's models."
