"""`fairlead nodes`: endpoints of one's own, reached by a prefix."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import say, show_json

app = typer.Typer(help="Provider endpoints of your own.", no_args_is_help=True)

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
    empty="There are no endpoints: add one with `fairlead nodes add <prefix> <base URL>`.",
)


@app.command()
def add(
    prefix: Annotated[str, typer.Argument(help="First part of its models' names: `<prefix>/...`.")],
    base_url: Annotated[str, typer.Argument(help="Such as http://127.0.0.1:11434/v1.")],
    name: Annotated[str | None, typer.Option(help="For people; the prefix if left out.")] = None,
    type_: Annotated[
        str, typer.Option("--type", help="What it speaks: <openai|anthropic|gemini>-compatible.")
    ] = "openai-compatible",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Add an endpoint. `fairlead providers add <prefix>` then gives it a credential."""
    body = {"type": type_, "name": name or prefix, "prefix": prefix, "baseUrl": base_url}
    answer = NODES.create(url, data_dir, body)
    if as_json:
        show_json(answer)
    else:
        say(f"Added {prefix} ({answer['node']['id']}).")


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the endpoints."""
    NODES.print_list(url, data_dir, as_json=as_json)
