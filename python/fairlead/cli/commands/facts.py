"""`fairlead facts`: facts about a model, and who states them."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import typer

from fairlead.cli.assignment import Assignments, SecretFile, fields_from
from fairlead.cli.commands.completion import complete_model
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_table

app = typer.Typer(help="Facts about a model, and who states them.", no_args_is_help=True)

_PATH: Final = "/api/provider-models"
# The fields that name the model.
_NAMES: Final = frozenset({"provider", "modelId"})

Model = Annotated[
    str,
    typer.Argument(
        help="The model with its provider, such as openai/gpt-4o.", autocompletion=complete_model
    ),
]


@app.command()
def show(
    model: Model,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list facts that nobody states.")
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show the facts in force for a model."""
    from fairlead.cli.instance import Instance

    provider, name = _parts(model)
    with Instance(url, data_dir) as instance:
        found = instance.get(f"{_PATH}/facts", provider=provider, model=name)
    if as_json:
        show_json(found)
        return
    facts = [
        fact
        for fact in (*found["uses"], *found["facts"])
        if everything or fact["origin"] != "default"
    ]
    show_table(
        ["fact", "value", "from", "source"],
        [[each["name"], _cell(each["value"]), _origin(each), each["source"]] for each in facts],
        empty="Nobody states a fact about this model, so requests have the plain form of the dialect.",
    )


@app.command()
def edit(
    model: Model,
    assignments: Assignments = None,
    from_file: SecretFile = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Override facts of a model: `userMost=64 refuses='["seed"]'`. `null` restores the known value."""
    # Imported when they are needed: they would slow `--help` down.
    from fairlead.cli.instance import Instance
    from fairlead.gateway.models.fields import ModelFields

    provider, name = _parts(model)
    sent = fields_from(assignments, from_file)
    # All other fields are members of `facts`.
    own = {field.alias for field in ModelFields.model_fields.values()} - _NAMES
    facts = {field: value for field, value in sent.items() if field not in own}
    body = {field: value for field, value in sent.items() if field in own}
    if facts:
        body["facts"] = {**(body.get("facts") or {}), **facts}
    with Instance(url, data_dir) as instance:
        answer = instance.put(_PATH, {"provider": provider, "modelId": name, **body})
    if as_json:
        show_json(answer)
    else:
        print_message(f"Changed {model}.")


@app.command()
def reset(
    model: Model, data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False
) -> None:
    """Delete every override of a model. A custom model is removed from the lists."""
    from fairlead.cli.instance import Instance

    provider, name = _parts(model)
    with Instance(url, data_dir) as instance:
        answer = instance.delete(_PATH, provider=provider, model=name)
    if as_json:
        show_json({"model": model, **answer})
    else:
        print_message(f"Deleted the overrides of {model}.")


def _parts(model: str) -> tuple[str, str]:
    provider, _, name = model.partition("/")
    if not provider or not name:
        raise CommandFailed(f"`{model}` must have the form PROVIDER/MODEL, such as openai/gpt-4o.")
    return provider, name


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _origin(fact: dict[str, Any]) -> str:
    patterns = ", ".join(fact["patterns"] or ())
    return f"{fact['origin']} {patterns}".strip()
