"""`fairlead aliases`: other names for models and combos."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from fairlead.cli.commands.completion import complete_model
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_table
from fairlead.text.near_names import did_you_mean
from fairlead.text.sentence import opened

app = typer.Typer(help="Other names for models and combos.", no_args_is_help=True)

_PATH: Final = "/api/models/alias"


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the aliases."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = instance.get(_PATH)
    if as_json:
        show_json(found)
        return
    show_table(
        ["alias", "model"],
        sorted(found["aliases"].items()),
        empty="There are no aliases: add one with `fairlead aliases add <alias> <model>`.",
    )


@app.command()
def add(
    alias: Annotated[str, typer.Argument(help="The name that callers use, such as gpt-4o.")],
    model: Annotated[
        str,
        typer.Argument(
            help="The model or combo that answers, such as openai/gpt-4o or combo/fast.",
            autocompletion=complete_model,
        ),
    ],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Add an alias, or point an existing one at another model. Callers can use it at once."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.model_names import callable_names, unknown_model_warning

    with Instance(url, data_dir) as instance:
        answer = instance.post(_PATH, {"alias": alias, "model": model})
        warning = unknown_model_warning(model, callable_names(instance))
    if warning is not None:
        print_message(f"fairlead: WARNING: {opened(warning)}", to_stderr=True)
    if as_json:
        show_json(answer)
    else:
        print_message(f"Added the alias {alias} for {model}.")


@app.command()
def remove(
    alias: Annotated[str, typer.Argument(help="The alias.")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove an alias. Calls that use it are refused from now on."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        known = instance.get(_PATH)["aliases"]
        if alias not in known:
            near = did_you_mean(alias, known)
            raise CommandFailed(
                f"there is no alias {alias}: `fairlead aliases list` shows them.{near}"
            )
        answer = instance.delete(_PATH, alias=alias)
    if as_json:
        show_json({"alias": alias, "model": known[alias], **answer})
    else:
        print_message(f"Removed {alias} ({known[alias]}).")
