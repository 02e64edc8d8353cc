"""`fairlead providers`: connections to providers, each one credential."""

from __future__ import annotations

from collections.abc import Container
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.commands.completion import complete_connection
from fairlead.cli.commands.nodes import NODES
from fairlead.cli.credential import read_credential
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_table
from fairlead.cli.record_commands import RecordCommands
from fairlead.text.near_names import did_you_mean

app = typer.Typer(help="Connections to providers.", no_args_is_help=True)

CONNECTIONS: Final = Collection(
    path="/api/providers",
    key="connections",
    kind="connection",
    columns={
        "id": "id",
        "name": "name",
        "provider": "provider",
        "key": "apiKey",
        "priority": "priority",
        "active": "isActive",
        "last test": "testStatus",
    },
    wrapper="connection",
    empty="There are no connections: add one with `fairlead providers add <provider>`.",
)

_CREDENTIALS: Final = {
    "none": "none",
    "aws-sigv4": "AWS keys",
    "google-service-account": "service account",
}
"""How a provider is authenticated at, where not with an API key."""

Connection = Annotated[
    str,
    typer.Argument(
        metavar="CONNECTION",
        help="The connection's id or name.",
        autocompletion=complete_connection,
    ),
]

COMMANDS: Final = RecordCommands(app, CONNECTIONS, Connection)


@app.command()
def add(
    provider: Annotated[
        str,
        typer.Argument(help="A provider's id from `fairlead providers known`, or a node's prefix."),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="A name to recognise it by. Default: the provider's, numbered if it is taken."
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the credential, `-` for standard input. Default: a prompt asks for it."
        ),
    ] = None,
    no_key: Annotated[
        bool, typer.Option("--no-key", help="The provider needs no credential.")
    ] = False,
    priority: Annotated[int, typer.Option(help="1 to 100; lower numbers are used first.")] = 50,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Add a connection to a provider. The credential is read from a file, standard input or a prompt."""
    from fairlead.cli.instance import Instance

    credential = None if no_key else read_credential(api_key_file, "Credential")
    with Instance(url, data_dir) as instance:
        taken = {str(each["name"]) for each in CONNECTIONS.records(instance)}
        if name is not None and name in taken:
            raise CommandFailed(f"there is a connection with the name {name}: choose another one.")
        name = name or _free_name(provider, taken)
        body: dict[str, Any] = {"provider": provider, "name": name, "priority": priority}
        if credential is not None:
            body["apiKey"] = credential
        answer = instance.post(CONNECTIONS.path, body)
    if as_json:
        show_json(answer)
    else:
        print_message(f"Added {name} at {provider} ({answer['connection']['id']}).")


def _free_name(provider: str, taken: Container[str]) -> str:
    """The provider's name, or the first of `openai-2`, `openai-3`, ... that no connection has."""
    names = chain([provider], (f"{provider}-{number}" for number in count(2)))
    return next(each for each in names if each not in taken)


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the connections."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        connections = CONNECTIONS.records(instance)
        nodes = [] if as_json else NODES.records(instance)
    # People know a node by its prefix.
    prefixes = {node["id"]: node["prefix"] for node in nodes}
    for connection in connections:
        connection["provider"] = prefixes.get(connection["provider"], connection["provider"])
    CONNECTIONS.print_records(connections, as_json=as_json)


@app.command()
def known(
    text: Annotated[
        str | None, typer.Argument(help="Only providers with this in their id, name or address.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the providers that can be added by their id. No gateway has to run."""
    from fairlead.gateway.providers.catalogue import catalogue

    everything = [
        {
            "id": each.id,
            "name": each.name,
            "dialect": each.dialect,
            "credential": _CREDENTIALS.get(each.auth, "API key"),
            "models": len(each.models),
            "baseUrl": each.base_url,
        }
        for each in catalogue().values()
    ]
    wanted = (text or "").lower()
    found = [
        each
        for each in everything
        if any(wanted in str(each[field]).lower() for field in ("id", "name", "baseUrl"))
    ]
    if as_json:
        show_json({"providers": found, "total": len(found)})
        return
    near = did_you_mean(text or "", (str(each["id"]) for each in everything))
    show_table(
        ["id", "name", "dialect", "credential", "models", "base URL"],
        [list(each.values()) for each in found],
        empty=f"No provider has {text} in its id, name or address.{near} For another server, "
        "run `fairlead nodes add <prefix> <base URL>`.",
    )


@app.command("test")
def check(
    connection: Connection,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Ask the provider for its models, to check that the connection works. Exit code 1 if it does not."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = CONNECTIONS.find(instance, connection)
        result = instance.post(f"/api/providers/{found['id']}/test", {})
    if as_json:
        show_json(result)
    elif result["valid"]:
        print_message(f"{found['name']} works ({result['latencyMs']} ms).")
    else:
        print_message(f"{found['name']} does not work: {result['error']}")
    if not result["valid"]:
        raise typer.Exit(1)


COMMANDS.add_show("Show every field of a connection except its credential.")
COMMANDS.add_edit("Change fields of a connection. Fields that you do not name stay as they are.")
COMMANDS.add_delete("Remove a connection and its credential.", "remove", "Removed")
