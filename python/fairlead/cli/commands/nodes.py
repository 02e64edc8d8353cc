"""`fairlead nodes`: custom endpoints, addressed by a prefix."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from fairlead.cli.assignment import Assignments, SecretFile, fields_from
from fairlead.cli.collection import Collection
from fairlead.cli.commands.completion import complete_node
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json

app = typer.Typer(help="Your own provider endpoints.", no_args_is_help=True)

NODES: Final = Collection(
    path="/api/provider-nodes",
    key="nodes",
    kind="endpoint",
    columns={
        "id": "id",
        "prefix": "prefix",
        "name": "name",
        "type": "type",
        "base URL": "baseUrl",
    },
    wrapper="node",
    label="prefix",
    empty="There are no endpoints: add one with `fairlead nodes add <prefix> <base URL>`.",
)

Node = Annotated[
    str, typer.Argument(help="The endpoint's prefix, id or name.", autocompletion=complete_node)
]


@app.command()
def add(
    prefix: Annotated[
        str, typer.Argument(help="The prefix of its models' names: `<prefix>/<model>`.")
    ],
    base_url: Annotated[
        str, typer.Argument(help="The base URL, such as http://127.0.0.1:11434/v1.")
    ],
    name: Annotated[
        str | None, typer.Option(help="A name to recognise it by. Default: the prefix.")
    ] = None,
    type_: Annotated[
        str,
        typer.Option(
            "--type",
            help="The API that it implements: <openai|anthropic|gemini>-compatible.",
        ),
    ] = "openai-compatible",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Add an endpoint. Then run `fairlead providers add <prefix>` to give it a credential."""
    body = {"type": type_, "name": name or prefix, "prefix": prefix, "baseUrl": base_url}
    answer = NODES.create(url, data_dir, body)
    if as_json:
        show_json(answer)
    else:
        print_message(f"Added {prefix} ({answer['node']['id']}).")


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the endpoints."""
    NODES.print_list(url, data_dir, as_json=as_json)


@app.command()
def show(
    node: Node,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show every field of an endpoint."""
    NODES.show(node, url, data_dir, as_json=as_json)


@app.command()
def edit(
    node: Node,
    assignments: Assignments = None,
    from_file: SecretFile = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Change fields of an endpoint. Fields that you do not name stay as they are."""
    NODES.change(node, fields_from(assignments, from_file), url, data_dir, as_json=as_json)


@app.command()
def remove(
    node: Node,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove an endpoint that has no connections."""
    NODES.delete(node, url, data_dir, as_json=as_json, verb="Removed")
