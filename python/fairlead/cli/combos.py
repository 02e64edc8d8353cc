"""`fairlead combos`: names that stand for several models."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import say, show_json, show_table

app = typer.Typer(help="Names that stand for several models.", no_args_is_help=True)


def _step_name(step: dict[str, Any]) -> str:
    """A step as callers write it: a model, or `combo/<name>`."""
    return str(step["model"]) if step["kind"] == "model" else f"combo/{step['comboName']}"


COMBOS: Final = Collection(
    path="/api/combos",
    key="combos",
    kind="combo",
    columns={
        "id": "id",
        "name": "name",
        "strategy": "strategy",
        "active": "isActive",
        "steps": lambda combo: ", ".join(map(_step_name, combo["models"])),
    },
    empty="There are no combos: make one with `fairlead combos create <name> <model> ...`.",
)


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the combos."""
    COMBOS.print_list(url, data_dir, as_json=as_json)


@app.command()
def show(
    combo: Annotated[str, typer.Argument(help="The combo's id or name.")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show one combo with its steps."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = COMBOS.find(instance, combo)
    if as_json:
        show_json(found)
        return
    say(f"{found['name']} ({found['id']}): {found['strategy']}")
    show_table(
        ["step", "weight", "connection"],
        [[_step_name(step), step["weight"], step.get("connectionId")] for step in found["models"]],
        empty="It has no steps.",
    )


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What callers write as the model.")],
    steps: Annotated[
        list[str],
        typer.Argument(
            help="Models as `<prefix>/<model>`, or `combo/<name>`, in order; "
            "`=<weight>` behind one gives it a weight."
        ),
    ],
    strategy: Annotated[str, typer.Option(help="How the combo decides.")] = "priority",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Make a combo; it can be called at once."""
    body = {"name": name, "strategy": strategy, "models": [_parse_step(text) for text in steps]}
    created = COMBOS.create(url, data_dir, body)
    if as_json:
        show_json(created)
    else:
        say(f"Made {created['name']} ({created['id']}). Callers name it `combo/{name}`.")


@app.command()
def delete(
    combo: Annotated[str, typer.Argument(help="The combo's id or name.")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete a combo: its name is refused from the moment that this returns."""
    COMBOS.delete(combo, url, data_dir, as_json=as_json)


def _parse_step(text: str) -> dict[str, Any]:
    """The API's step for `<model>` or `<model>=<weight>`. Raises `CommandFailed`."""
    model, equals, weight = text.rpartition("=")
    if not equals:
        model, weight = text, "0"
    if not weight.isascii() or not weight.isdigit():
        raise CommandFailed(f"the weight in `{text}` must be a whole number from 0 to 100.")
    if model.startswith("combo/"):
        name = model.removeprefix("combo/")
        return {"kind": "combo-ref", "comboName": name, "weight": int(weight)}
    return {"kind": "model", "model": model, "weight": int(weight)}
