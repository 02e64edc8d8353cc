"""`fairlead nodes`: endpoints of one's own, reached by a prefix."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.cli.options import DATA_DIR, DataDir, Json, Url

app = typer.Typer(help="Provider endpoints of your own.", no_args_is_help=True)


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
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json

    body = {"type": type_, "name": name or prefix, "prefix": prefix, "baseUrl": base_url}
    with Instance(url, data_dir) as instance:
        answer = instance.post("/api/provider-nodes", body)
    if as_json:
        show_json(answer)
    else:
        print(f"Added {prefix} ({answer['node']['id']}).")


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the endpoints."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import pick, show_json, show_table

    with Instance(url, data_dir) as instance:
        nodes = instance.every("/api/provider-nodes", "nodes")
    if as_json:
        show_json({"nodes": nodes, "total": len(nodes)})
        return
    show_table(
        ["id", "prefix", "name", "type", "base URL"],
        [pick(node, "id", "prefix", "name", "type", "baseUrl") for node in nodes],
        empty="There are no endpoints: add one with `fairlead nodes add <prefix> <base URL>`.",
    )
