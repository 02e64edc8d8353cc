"""`fairlead cache`: answers that are kept to be given again."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.cli.commands.completion import complete_model
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import pick, print_message, show_json, show_table

app = typer.Typer(help="The response cache.", no_args_is_help=True)

Model = Annotated[
    str | None, typer.Option(help="Only entries of this model.", autocompletion=complete_model)
]
Provider = Annotated[str | None, typer.Option(help="Only entries of this provider, by its id.")]
Key = Annotated[str | None, typer.Option(help="Only entries of this key, by its id.")]


@app.command()
def show(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """Show the cache's size, and what it has saved since the workers started."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = instance.get("/api/cache")
    if as_json:
        show_json(found)
        return
    cache, config = found["semanticCache"], found["config"]
    show_table(
        ["what", "value"],
        [
            ["enabled", config["semanticCacheEnabled"]],
            ["kept for", f"{config['semanticCacheTtlMs'] // 1000} s"],
            ["answers", cache["totalEntries"]],
            ["on disk", f"{cache['diskBytes'] / 2**20:.1f} MiB"],
            ["hits", cache["hits"]],
            ["misses", cache["misses"]],
            ["hit rate", f"{cache['hitRate'] * 100:.1f} %"],
            ["tokens saved", cache["tokensSaved"]],
            ["cost saved", f"${cache['costSavedUsd']:.6f}"],
            ["vector tier", found["vectorCache"]["state"]],
        ],
        empty="",
    )


@app.command("list")
def list_(
    model: Model = None,
    provider: Provider = None,
    key: Key = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="The number of entries.")] = 50,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List cached answers, newest first."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = instance.get(
            "/api/cache/entries", model=model, provider=provider, keyId=key, limit=limit
        )
    if as_json:
        show_json(found)
        return
    names = ("signature", "model", "tokens", "hits", "inMemory", "onDisk", "expiresAt")
    show_table(
        ["signature", "model", "tokens", "hits", "in memory", "on disk", "expires"],
        [pick(entry, *names) for entry in found["entries"]],
        empty="The cache is empty.",
    )


@app.command()
def clear(
    model: Model = None,
    provider: Provider = None,
    key: Key = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete every entry.")] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete cached answers of a model, provider or key, or all of them."""
    from fairlead.cli.instance import Instance

    if everything == any((model, provider, key)):
        raise CommandFailed("choose what to delete: --model, --provider and --key, or --all alone.")
    with Instance(url, data_dir) as instance:
        answer = instance.delete("/api/cache/entries", model=model, provider=provider, keyId=key)
    if as_json:
        show_json(answer)
    else:
        print_message(f"Forgot {answer['removed']} answers.")
