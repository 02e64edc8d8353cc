"""`fairlead contexts`: the gateways that were signed in at, and the one in use."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.cli.chosen import LOCAL
from fairlead.cli.commands.completion import complete_context
from fairlead.cli.options import Json
from fairlead.cli.output import print_message, show_json, show_table

app = typer.Typer(help="Gateways that you signed in at.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The context's name.", autocompletion=complete_context)]


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the contexts, without their credentials."""
    from fairlead.cli.context_file import read_contexts

    contexts = read_contexts()
    shown = [
        {
            "name": name,
            "url": each.url,
            "current": name == contexts.current,
            "token": "***",
            "caFile": each.ca_file,
            "insecure": each.insecure,
        }
        for name, each in contexts.by_name.items()
    ]
    if as_json:
        show_json({"contexts": shown, "current": contexts.current or LOCAL})
        return
    show_table(
        ["name", "url", "current", "authorities", "unchecked"],
        [
            [each["name"], each["url"], each["current"], each["caFile"], each["insecure"]]
            for each in shown
        ],
        empty="There are no contexts: create one with `fairlead login <address>`.",
    )


@app.command()
def use(name: Name, as_json: Json = False) -> None:
    """Use this gateway for commands from now on. `local` is the instance on this machine."""
    from fairlead.cli.context_file import changed_contexts

    with changed_contexts() as contexts:
        if name == LOCAL:
            contexts.current = None
        else:
            contexts.find(name)
            contexts.current = name
    if as_json:
        show_json({"current": name})
    else:
        print_message(f"Commands work at {name} from now on.")


@app.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Remove a gateway and its credential from this machine. The credential itself stays valid until it is revoked."""
    from fairlead.cli.context_file import changed_contexts

    with changed_contexts() as contexts:
        contexts.find(name)
        del contexts.by_name[name]
        if contexts.current == name:
            contexts.current = None
    if as_json:
        show_json({"removed": name, "current": contexts.current or LOCAL})
        return
    print_message(
        f"Removed {name}. Its token still counts at the gateway until it is revoked there."
    )
