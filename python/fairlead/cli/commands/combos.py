"""`fairlead combos`: names that stand for several models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.commands.completion import complete_combo
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_table
from fairlead.cli.record_commands import RecordCommands
from fairlead.text.sentence import opened

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

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
        "description": "description",
    },
    empty="There are no combos: create one with `fairlead combos create <name> <model> ...`.",
)

ComboName = Annotated[
    str,
    typer.Argument(metavar="COMBO", help="The combo's id or name.", autocompletion=complete_combo),
]
STEPS_HELP: Final = (
    "Models as `<prefix>/<model>`, or `combo/<name>`, in order. "
    "Add `=<weight>` (0 to 100) to give one a weight."
)
_MOST_WEIGHT: Final = 100

COMMANDS: Final = RecordCommands(app, COMBOS, ComboName)
COMMANDS.add_list("List the combos.")


@app.command()
def show(
    combo: ComboName,
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
    print_message(f"{found['name']} ({found['id']}): {found['strategy']}")
    if found["description"]:
        print_message(found["description"])
    show_table(
        ["step", "label", "weight", "connection"],
        [
            [_step_name(step), step["label"], step["weight"], step.get("connectionId")]
            for step in found["models"]
        ],
        empty="It has no steps.",
    )


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The name that callers use as `combo/<name>`.")],
    steps: Annotated[
        list[str],
        typer.Argument(help=STEPS_HELP),
    ],
    strategy: Annotated[
        str, typer.Option(help="How the combo chooses among its models.")
    ] = "priority",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a combo. Callers can use it at once."""
    from fairlead.cli.instance import Instance

    body = {"name": name, "strategy": strategy, "models": [_parse_step(text) for text in steps]}
    with Instance(url, data_dir) as instance:
        created = instance.post(COMBOS.path, body)
        _warn_of_steps(created["models"], instance)
    if as_json:
        show_json(created)
    else:
        print_message(f"Made {created['name']} ({created['id']}). Callers name it `combo/{name}`.")


COMMANDS.add_delete("Delete a combo. Calls that name it are refused at once.")


@app.command()
def edit(
    combo: ComboName,
    step: Annotated[
        list[str] | None, typer.Option(help=f"Replaces all steps. Repeatable. {STEPS_HELP}")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="How the combo chooses among its models.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether callers can use it.")
    ] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Change a combo. Options that you do not give leave it as it is."""
    changes = {"strategy": strategy, "name": name, "isActive": active}
    fields: dict[str, Any] = {field: value for field, value in changes.items() if value is not None}
    if step:
        fields["models"] = [_parse_step(text) for text in step]
    if not fields:
        raise CommandFailed(
            "nothing is to be changed: `fairlead combos edit --help` lists what can."
        )
    COMBOS.change(combo, fields, url, data_dir, as_json=as_json)
    if step:
        from fairlead.cli.instance import Instance

        with Instance(url, data_dir) as instance:
            _warn_of_steps(fields["models"], instance)


@app.command("test")
def send_test(
    combo: ComboName,
    prompt: Annotated[
        str, typer.Option(help="The question to send.")
    ] = "Answer with one word: ready?",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Send one short question to a combo and show which model answered. This is a real call with its cost."""
    from fairlead.cli.conversation import PATH
    from fairlead.cli.instance import Instance, answer_of

    with Instance(url, data_dir) as instance:
        name = COMBOS.find(instance, combo)["name"]
        message = {"role": "user", "content": prompt}
        body = {"model": f"combo/{name}", "messages": [message], "max_tokens": 16}
        answer = instance.request("POST", PATH, json=body, headers={"cache-control": "no-store"})
    result = answer_of(answer)
    shown = {
        "combo": name,
        "provider": answer.headers.get("x-gateway-provider"),
        "model": answer.headers.get("x-gateway-model"),
        "failedBefore": int(answer.headers.get("x-gateway-fallback-attempts", "0")),
        "latencyMs": int(answer.headers.get("x-gateway-latency-ms", "0")),
        "costUsd": None
        if "x-gateway-unpriced" in answer.headers
        else float(answer.headers.get("x-gateway-response-cost", "0")),
        "usage": result.get("usage"),
    }
    if as_json:
        show_json(shown)
    else:
        cost = shown["costUsd"]
        price = "no price" if cost is None else f"${cost:.6f}"
        print_message(
            f"{shown['provider']}/{shown['model']} answered after {shown['latencyMs']} ms for "
            f"{price}; {shown['failedBefore']} failed before it."
        )


@app.command()
def simulate(
    combo: Annotated[str, typer.Argument(help="The model name that a caller would use.")],
    prompt: Annotated[
        str, typer.Option(help="The question to simulate.")
    ] = "Answer with one word: ready?",
    key: Annotated[
        str | None, typer.Option(help="The id of the API key of the simulated call.")
    ] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show which targets a combo would try, in which order and why. No provider is called."""
    from fairlead.cli.instance import Instance, answer_of

    request = {"messages": [{"role": "user", "content": prompt}]}
    body = {"comboName": combo, "request": request, "apiKeyId": key}
    with Instance(url, data_dir) as instance:
        simulation = answer_of(instance.request("POST", "/api/combos/simulate", json=body))
    if as_json:
        show_json(simulation)
        return
    print_message(f"{simulation['combo']}: {simulation['strategy']}, {simulation['why']}.")
    show_table(
        ["order", "model", "connection", "score", "why not"],
        [
            [
                target["order"],
                target["model"],
                target["connection"] or target["connectionId"],
                None if target["score"] is None else f"{target['score']:.3f}",
                target["reason"],
            ]
            for target in simulation["targets"]
        ],
        empty="It has no target.",
    )


def _warn_of_steps(steps: list[dict[str, Any]], instance: Instance) -> None:
    """Says which models of a combo nobody serves: it is stored all the same, for a provider that comes later."""
    from fairlead.cli.model_names import callable_names, unknown_model_warning

    known = callable_names(instance)
    for step in steps:
        if (
            step["kind"] == "model"
            and (warning := unknown_model_warning(step["model"], known)) is not None
        ):
            print_message(f"fairlead: WARNING: {opened(warning)}", to_stderr=True)


def _parse_step(text: str) -> dict[str, Any]:
    """The API's step for `<model>` or `<model>=<weight>`. Raises `CommandFailed`.

    An `=` behind an `@` belongs to the model's name, such as `demo/standin@status=503`; a weight behind such a name
    is written after a second one: `demo/standin@status=503=20`.
    """
    model, equals, weight = text.rpartition("=")
    if not equals or ("@" in model and "=" not in model.rpartition("@")[2]):
        model, weight = text, "0"
    if not weight.isascii() or not weight.isdigit() or int(weight) > _MOST_WEIGHT:
        raise CommandFailed(f"the weight in `{text}` must be a whole number from 0 to 100.")
    if model.startswith("combo/"):
        name = model.removeprefix("combo/")
        return {"kind": "combo-ref", "comboName": name, "weight": int(weight)}
    return {"kind": "model", "model": model, "weight": int(weight)}
