"""`fairlead keys`: API keys, with which callers authenticate."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from fairlead.cli.assignment import Assignments, SecretFile, fields_from
from fairlead.cli.commands.completion import complete_key
from fairlead.cli.failure import CommandFailed
from fairlead.cli.key_collections import GROUPS, KEYS
from fairlead.cli.key_limits import (
    Budget,
    Models,
    Rate,
    Rpm,
    Timezone,
    limit_fields,
    token_limit,
    with_limits_in_force,
)
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json
from fairlead.cli.record_commands import RecordCommands

app = typer.Typer(help="API keys for callers.", no_args_is_help=True)

Key = Annotated[
    str, typer.Argument(metavar="KEY", help="The key's id or name.", autocompletion=complete_key)
]

COMMANDS: Final = RecordCommands(app, KEYS, Key)


# Long by its signature: Typer reads each option from a parameter.
@app.command()
def create(
    name: Annotated[str, typer.Argument(help="A name to recognise the key by.")],
    models: Models = None,
    budget: Budget = None,
    rpm: Rpm = None,
    rate: Rate = None,
    tokens: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKENS/PERIOD",
            help="The most tokens in a day, week or month, such as 2M/month. Repeatable.",
        ),
    ] = None,
    timezone: Timezone = None,
    expires_at: Annotated[
        str | None, typer.Option(help="When it expires, in ISO 8601, such as 2027-01-31T12:00:00Z.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="A scope beyond calling models, such as `manage`. Repeatable."),
    ] = None,
    group: Annotated[str | None, typer.Option(help="The key's group, by id or name.")] = None,
    no_log: Annotated[
        bool, typer.Option("--no-log", help="Leave its requests out of the logs.")
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a key and print it. It is shown only once: the gateway stores a hash of it.

    For example: `fairlead keys create ci --budget 20/month --rpm 60 --models 'openai/*'`.
    """
    from fairlead.cli.instance import Instance

    body: dict[str, Any] = {"name": name, "noLog": no_log}
    body |= limit_fields(models, budget, rpm, rate, timezone)
    token_limits = [token_limit("--tokens", each) for each in tokens or []]
    if expires_at:
        body["expiresAt"] = expires_at
    if scope:
        body["scopes"] = scope
    with Instance(url, data_dir) as instance:
        if group:
            body["groupId"] = GROUPS.find(instance, group)["id"]
        created = instance.post(KEYS.path, body)
        try:
            for each in token_limits:
                instance.post("/api/usage/token-limits", {"apiKeyId": created["id"], **each})
        except CommandFailed:
            # A key without a limit that was asked for is not handed out.
            instance.delete(f"{KEYS.path}/{created['id']}")
            raise
    _print_text(created, as_json=as_json)


COMMANDS.add_list("List the keys.")
COMMANDS.add_delete(
    "Revoke a key. Requests with it are refused as soon as the command returns.",
    "revoke",
    "Revoked",
)


@app.command()
def regenerate(
    key: Key,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Replace a key by a new one with the same limits, and print it once. The old key stops working at once."""
    # Imported when it is needed: its HTTP client would slow `--help` down.
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        answer = instance.post(f"{KEYS.path}/{KEYS.find(instance, key)['id']}/regenerate")
    _print_text(answer, as_json=as_json)


COMMANDS.add_show("Show every field of a key. The key itself is not stored.")


@app.command()
def edit(
    key: Key,
    assignments: Assignments = None,
    models: Models = None,
    budget: Budget = None,
    rpm: Rpm = None,
    rate: Rate = None,
    timezone: Timezone = None,
    from_file: SecretFile = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Change a key. Fields that you do not name stay as they are.

    For example: `fairlead keys edit ci --budget 5/day`, or
    `fairlead keys edit ci maxSessions=4 monthlyUsageLimitUsd=null`.
    """
    fields = limit_fields(models, budget, rpm, rate, timezone)
    if assignments or from_file or not fields:
        fields |= with_limits_in_force(fields_from(assignments, from_file))
    KEYS.change(key, fields, url, data_dir, as_json=as_json)


def _print_text(key: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show_json(key)
        return
    print_message(key["key"])
    print_message("Save the key now: it cannot be shown again.", to_stderr=True)
