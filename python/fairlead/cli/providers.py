"""`fairlead providers`: connections to providers, each one credential."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fairlead.cli.assignment import Assignments, SecretFile, fields_from
from fairlead.cli.collection import Collection
from fairlead.cli.completion import complete_connection
from fairlead.cli.credential import read_credential
from fairlead.cli.nodes import NODES
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import say, show_json

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

Connection = Annotated[
    str,
    typer.Argument(help="The connection's id or name.", autocompletion=complete_connection),
]


@app.command()
def add(
    provider: Annotated[
        str, typer.Argument(help="A provider of the catalogue, or a node's prefix.")
    ],
    name: Annotated[
        str | None, typer.Option(help="For people; the provider's if left out.")
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the credential, `-` for standard input; else it is asked for."
        ),
    ] = None,
    no_key: Annotated[
        bool, typer.Option("--no-key", help="The provider asks for no credential.")
    ] = False,
    priority: Annotated[int, typer.Option(help="1 to 100; lower is used first.")] = 50,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Add a connection. Its credential is not taken from the command line, where others see it."""
    name = name or provider
    body: dict[str, Any] = {"provider": provider, "name": name, "priority": priority}
    if not no_key:
        body["apiKey"] = read_credential(api_key_file, "Credential")
    answer = CONNECTIONS.create(url, data_dir, body)
    if as_json:
        show_json(answer)
    else:
        say(f"Added {name} at {provider} ({answer['connection']['id']}).")


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


@app.command("test")
def check(
    connection: Connection,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Ask the provider whether the connection works; exit code 1 if it does not."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = CONNECTIONS.find(instance, connection)
        result = instance.post(f"/api/providers/{found['id']}/test", {})
    if as_json:
        show_json(result)
    elif result["valid"]:
        say(f"{found['name']} works ({result['latencyMs']} ms).")
    else:
        say(f"{found['name']} does not work: {result['error']}")
    if not result["valid"]:
        raise typer.Exit(1)


@app.command()
def show(
    connection: Connection,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show every field of a connection, but its credential."""
    CONNECTIONS.show(connection, url, data_dir, as_json=as_json)


@app.command()
def edit(
    connection: Connection,
    assignments: Assignments = None,
    from_file: SecretFile = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Change fields of a connection, but its credential; what is not named stays."""
    CONNECTIONS.change(
        connection, fields_from(assignments, from_file), url, data_dir, as_json=as_json
    )


@app.command()
def remove(
    connection: Connection,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove a connection and its credential."""
    CONNECTIONS.delete(connection, url, data_dir, as_json=as_json, verb="Removed")
