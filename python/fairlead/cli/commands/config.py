"""`fairlead config`: the operator settings of a running gateway."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from fairlead.cli.assignment import Assignments, SecretFile, fields_from
from fairlead.cli.commands.setup import HOME, AllowContainerWrite, ApiKey, ConfigHome, Model, Remote
from fairlead.cli.credential import prompt_secret
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_table
from fairlead.cli.tool_list import displayed_tools

app = typer.Typer(help="Operator settings.", no_args_is_help=True)


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="The setting to show. Default: all.")] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show the current settings."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        settings = instance.get("/api/settings")
    if name is not None:
        if name not in settings:
            raise CommandFailed(f"there is no setting {name}: `fairlead config show` lists them.")
        settings = {name: settings[name]}
    if as_json:
        show_json(settings)
    elif name is not None:
        print_message(_text(settings[name]))
    else:
        rows = [[setting, _text(value)] for setting, value in settings.items()]
        show_table(["setting", "value"], rows, empty="")


# Long by its signature: Typer reads each option from a parameter.
@app.command("set")
def set_(
    context: typer.Context,
    assignments: Assignments = None,
    from_file: SecretFile = None,
    prompt_password: Annotated[
        bool,
        typer.Option(
            "--ask-password", help="Prompt for your password, which security settings require."
        ),
    ] = False,
    remote: Remote = None,
    api_key: ApiKey = None,
    model: Model = None,
    allow_container_write: AllowContainerWrite = False,
    config_home: ConfigHome = HOME,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Change settings, as in `fairlead config set scrapeHostDelayMs=500`. Either all of them change or none.

    With a coding tool's id instead, as in `fairlead config set codex --model demo/standin`, it sets up that tool like
    `setup-<tool> --yes`.
    """
    from fairlead.cli.instance import Instance

    if assignments and len(assignments) == 1 and assignments[0] in displayed_tools():
        from fairlead.cli.commands.setup import SetupOptions, key_source, setup_tool
        from fairlead.cli.tool_gateway import GatewayChoice

        if from_file or prompt_password:
            raise CommandFailed("--from-file and --ask-password are for settings, not for a tool.")
        options = SetupOptions(True, False, False, allow_container_write, as_json)
        choice = GatewayChoice(remote, api_key, None, url, data_dir, key_source(context))
        setup_tool(assignments[0], choice, config_home, model=model, options=options)
        return
    if model is not None:
        raise CommandFailed(
            "--model is for a coding tool: name one, as `fairlead config set codex`."
        )
    fields = fields_from(assignments, from_file)
    with Instance(url, data_dir) as instance:
        before = instance.get("/api/settings")
        body = {name: _as_before(value, before.get(name)) for name, value in fields.items()}
        if prompt_password:
            body["currentPassword"] = prompt_secret("Current password")
        after = instance.patch("/api/settings", body)
    if as_json:
        show_json({name: after.get(name) for name in fields})
        return
    for name in fields:
        print_message(f"{name} = {_text(after.get(name))}")


def _as_before(value: Any, before: Any) -> Any:
    """A number or a word of JSON stays text where the setting is text."""
    is_text = isinstance(before, str) and not isinstance(value, str) and value is not None
    return json.dumps(value) if is_text else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
