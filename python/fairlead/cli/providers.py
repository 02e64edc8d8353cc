"""`fairlead providers`: connections to providers, each one credential."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fairlead.cli.options import DATA_DIR, DataDir, Json, Url

app = typer.Typer(help="Connections to providers.", no_args_is_help=True)


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
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json

    name = name or provider
    body: dict[str, Any] = {"provider": provider, "name": name, "priority": priority}
    if not no_key:
        body["apiKey"] = _credential(api_key_file)
    with Instance(url, data_dir) as instance:
        answer = instance.post("/api/providers", body)
    if as_json:
        show_json(answer)
    else:
        print(f"Added {name} at {provider} ({answer['connection']['id']}).")


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the connections."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import pick, show_json, show_table

    with Instance(url, data_dir) as instance:
        connections = instance.every("/api/providers", "connections")
        nodes = [] if as_json else instance.every("/api/provider-nodes", "nodes")
    if as_json:
        show_json({"connections": connections, "total": len(connections)})
        return
    # People know a node by its prefix.
    prefixes = {node["id"]: node["prefix"] for node in nodes}
    for connection in connections:
        connection["provider"] = prefixes.get(connection["provider"], connection["provider"])
    names = ("id", "name", "provider", "apiKey", "priority", "isActive", "testStatus")
    show_table(
        ["id", "name", "provider", "key", "priority", "active", "last test"],
        [pick(connection, *names) for connection in connections],
        empty="There are no connections: add one with `fairlead providers add <provider>`.",
    )


@app.command("test")
def try_(
    connection: Annotated[str, typer.Argument(help="The connection's id or name.")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Ask the provider whether the connection works; exit code 1 if it does not."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json
    from fairlead.cli.selection import one_of

    with Instance(url, data_dir) as instance:
        found = one_of(instance.every("/api/providers", "connections"), connection, "connection")
        result = instance.post(f"/api/providers/{found['id']}/test", {})
    if as_json:
        show_json(result)
    elif result["valid"]:
        print(f"{found['name']} works ({result['latencyMs']} ms).")
    else:
        print(f"{found['name']} does not work: {result['error']}")
    if not result["valid"]:
        raise typer.Exit(1)


def _credential(path: Path | None) -> str:
    if path is None:
        return str(typer.prompt("Credential", hide_input=True, err=True))
    if str(path) == "-":
        return sys.stdin.read().strip()
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise typer.BadParameter(f"{path} cannot be read: {reason}.") from None
