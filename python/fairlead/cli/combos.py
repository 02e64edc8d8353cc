"""`fairlead combos`: names that stand for several models."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url

app = typer.Typer(help="Names that stand for several models.", no_args_is_help=True)


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the combos."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json, show_table

    with Instance(url, data_dir) as instance:
        combos = instance.every("/api/combos", "combos")
    if as_json:
        show_json({"combos": combos, "total": len(combos)})
        return
    show_table(
        ["id", "name", "strategy", "active", "steps"],
        [
            [
                combo["id"],
                combo["name"],
                combo["strategy"],
                combo["isActive"],
                ", ".join(_named(step) for step in combo["models"]),
            ]
            for combo in combos
        ],
        empty="There are no combos: make one with `fairlead combos create <name> <model> ...`.",
    )


@app.command()
def show(
    combo: Annotated[str, typer.Argument(help="The combo's id or name.")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show one combo with its steps."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json, show_table
    from fairlead.cli.selection import one_of

    with Instance(url, data_dir) as instance:
        found = one_of(instance.every("/api/combos", "combos"), combo, "combo")
    if as_json:
        show_json(found)
        return
    print(f"{found['name']} ({found['id']}): {found['strategy']}")
    show_table(
        ["step", "weight", "connection"],
        [[_named(step), step["weight"], step.get("connectionId")] for step in found["models"]],
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
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json

    body = {"name": name, "strategy": strategy, "models": [_step(text) for text in steps]}
    with Instance(url, data_dir) as instance:
        created = instance.post("/api/combos", body)
    if as_json:
        show_json(created)
    else:
        print(f"Made {created['name']} ({created['id']}). Callers name it `combo/{name}`.")


@app.command()
def delete(
    combo: Annotated[str, typer.Argument(help="The combo's id or name.")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete a combo: its name is refused from the moment that this returns."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json
    from fairlead.cli.selection import one_of

    with Instance(url, data_dir) as instance:
        found = one_of(instance.every("/api/combos", "combos"), combo, "combo")
        answer = instance.delete(f"/api/combos/{found['id']}")
    if as_json:
        show_json({"id": found["id"], "name": found["name"], **answer})
    else:
        print(f"Deleted {found['name']} ({found['id']}).")


def _step(text: str) -> dict[str, Any]:
    """`<model>` or `<model>=<weight>`."""
    model, equals, weight = text.rpartition("=")
    if not equals:
        model, weight = text, "0"
    if not weight.isascii() or not weight.isdigit():
        raise CommandFailed(f"the weight in `{text}` must be a whole number from 0 to 100.")
    if model.startswith("combo/"):
        name = model.removeprefix("combo/")
        return {"kind": "combo-ref", "comboName": name, "weight": int(weight)}
    return {"kind": "model", "model": model, "weight": int(weight)}


def _named(step: dict[str, Any]) -> str:
    return step["model"] if step["kind"] == "model" else f"combo/{step['comboName']}"
