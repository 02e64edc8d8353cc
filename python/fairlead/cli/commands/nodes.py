"""`fairlead nodes`: custom endpoints, addressed by a prefix."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.commands.completion import complete_node
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json
from fairlead.cli.record_commands import RecordCommands

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
    str,
    typer.Argument(
        metavar="NODE", help="The endpoint's prefix, id or name.", autocompletion=complete_node
    ),
]

COMMANDS: Final = RecordCommands(app, NODES, Node)


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


COMMANDS.add_list("List the endpoints.")
COMMANDS.add_show("Show every field of an endpoint.")
COMMANDS.add_edit("Change fields of an endpoint. Fields that you do not name stay as they are.")
COMMANDS.add_delete("Remove an endpoint that has no connections.", "remove", "Removed")
