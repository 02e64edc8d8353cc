"""`fairlead combos`: names that stand for several models."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.completion import complete_combo
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
        "description": "description",
    },
    empty="There are no combos: make one with `fairlead combos create <name> <model> ...`.",
)

ComboName = Annotated[
    str, typer.Argument(help="The combo's id or name.", autocompletion=complete_combo)
]
STEPS_HELP: Final = (
    "Models as `<prefix>/<model>`, or `combo/<name>`, in order; "
    "`=<weight>` behind one gives it a weight."
)


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the combos."""
    COMBOS.print_list(url, data_dir, as_json=as_json)


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
    say(f"{found['name']} ({found['id']}): {found['strategy']}")
    if found["description"]:
        say(found["description"])
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
    name: Annotated[str, typer.Argument(help="What callers write as the model.")],
    steps: Annotated[
        list[str],
        typer.Argument(help=STEPS_HELP),
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
    combo: ComboName,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete a combo: its name is refused from the moment that this returns."""
    COMBOS.delete(combo, url, data_dir, as_json=as_json)


@app.command()
def edit(
    combo: ComboName,
    step: Annotated[
        list[str] | None, typer.Option(help=f"All steps anew; repeatable. {STEPS_HELP}")
    ] = None,
    strategy: Annotated[str | None, typer.Option(help="How the combo decides.")] = None,
    name: Annotated[str | None, typer.Option(help="What callers write from now on.")] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether it can be called.")
    ] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Change a combo; what is not named stays."""
    changes = {"strategy": strategy, "name": name, "isActive": active}
    fields: dict[str, Any] = {field: value for field, value in changes.items() if value is not None}
    if step:
        fields["models"] = [_parse_step(text) for text in step]
    if not fields:
        raise CommandFailed(
            "nothing is to be changed: `fairlead combos edit --help` lists what can."
        )
    COMBOS.change(combo, fields, url, data_dir, as_json=as_json)


@app.command("test")
def send_test(
    combo: ComboName,
    prompt: Annotated[str, typer.Option(help="What is asked.")] = "Answer with one word: ready?",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Ask a combo one small question and say which of its models answered; it costs what a call costs."""
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
        say(
            f"{shown['provider']}/{shown['model']} answered after {shown['latencyMs']} ms for "
            f"{price}; {shown['failedBefore']} failed before it."
        )


@app.command()
def simulate(
    combo: Annotated[str, typer.Argument(help="What callers would write as the model.")],
    prompt: Annotated[
        str, typer.Option(help="What would be asked.")
    ] = "Answer with one word: ready?",
    key: Annotated[str | None, typer.Option(help="The id of the API key that would ask.")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Say which targets a combo would try, in which order, and why; nobody is asked."""
    from fairlead.cli.instance import Instance, answer_of

    request = {"messages": [{"role": "user", "content": prompt}]}
    body = {"comboName": combo, "request": request, "apiKeyId": key}
    with Instance(url, data_dir) as instance:
        simulation = answer_of(instance.request("POST", "/api/combos/simulate", json=body))
    if as_json:
        show_json(simulation)
        return
    say(f"{simulation['combo']}: {simulation['strategy']}, {simulation['why']}.")
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
