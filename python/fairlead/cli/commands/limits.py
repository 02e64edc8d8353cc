"""`fairlead limits`: token limits of keys."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.commands.completion import complete_key, complete_model
from fairlead.cli.failure import CommandFailed
from fairlead.cli.key_collections import KEYS
from fairlead.cli.key_limits import token_limit
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json

app = typer.Typer(help="Token limits of keys.", no_args_is_help=True)

LIMITS: Final = Collection(
    path="/api/usage/token-limits",
    key="limits",
    kind="token limit",
    columns={
        "id": "id",
        "key": "key",
        "counts": lambda limit: limit["scopeValue"] or "every call",
        "limit": "tokenLimit",
        "interval": "resetInterval",
        "used": "tokensUsed",
        "left": "remaining",
        "next reset": "nextResetAt",
        "active": "enabled",
    },
    empty="There are no token limits: add one with `fairlead limits add <key> 2M/month`.",
    id_in_query=True,
)

Key = Annotated[str, typer.Argument(help="The key's id or name.", autocompletion=complete_key)]


@app.command("list")
def list_(
    key: Annotated[
        str | None,
        typer.Argument(
            help="The key's id or name. Default: every key.", autocompletion=complete_key
        ),
    ] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List token limits with what is used of them."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        keys = KEYS.records(instance) if key is None else [KEYS.find(instance, key)]
        found = [
            {**limit, "key": each["name"]}
            for each in keys
            for limit in instance.get(LIMITS.path, apiKeyId=each["id"])["limits"]
        ]
    LIMITS.print_records(found, as_json=as_json)


@app.command()
def add(
    key: Key,
    tokens: Annotated[
        str,
        typer.Argument(metavar="TOKENS/PERIOD", help="Such as 500k/day, 2M/week or 2000000/month."),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Count calls of this model only.", autocompletion=complete_model),
    ] = None,
    provider: Annotated[str | None, typer.Option(help="Count calls of this provider only.")] = None,
    reset_time: Annotated[
        str, typer.Option(metavar="HH:MM", help="When the period starts again, in UTC.")
    ] = "00:00",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Limit the tokens that a key may use. The limit counts what the key used before it, too."""
    from fairlead.cli.instance import Instance

    if model and provider:
        raise CommandFailed("--model and --provider cannot be given together: add two limits.")
    body: dict[str, Any] = {**token_limit("TOKENS/PERIOD", tokens), "resetTime": reset_time}
    if model or provider:
        body |= {"scopeType": "model" if model else "provider", "scopeValue": model or provider}
    with Instance(url, data_dir) as instance:
        found = KEYS.find(instance, key)
        made = instance.post(LIMITS.path, {"apiKeyId": found["id"], **body})
    if as_json:
        show_json(made)
    else:
        print_message(
            f"Limited {found['name']} to {made['tokenLimit']:,} tokens {made['resetInterval']} ({made['id']})."
        )


@app.command()
def remove(
    limit: Annotated[
        str, typer.Argument(help="The limit's id, as `fairlead limits list` shows it.")
    ],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove a token limit."""
    LIMITS.delete_by_id(limit, url, data_dir, as_json=as_json, verb="Removed")
