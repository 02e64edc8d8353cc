"""`fairlead keys`: API keys, with which callers authenticate."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from fairlead.cli.assignment import Assignments, SecretFile, fields_from
from fairlead.cli.collection import Collection
from fairlead.cli.completion import complete_key
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import say, show_json

app = typer.Typer(help="API keys that callers hold.", no_args_is_help=True)

KEYS: Final = Collection(
    path="/api/keys",
    key="keys",
    kind="key",
    columns={
        "id": "id",
        "name": "name",
        "key": "keyPreview",
        "active": "isActive",
        "expires": "expiresAt",
        "last used": "lastUsedAt",
        "created": "createdAt",
    },
    change_by="patch",
    empty="There are no keys: make one with `fairlead keys create <name>`.",
)

Key = Annotated[str, typer.Argument(help="The key's id or name.", autocompletion=complete_key)]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Whose or what for, for people.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model that the key may call, `*` at its end allowed; repeatable."),
    ] = None,
    expires_at: Annotated[
        str | None, typer.Option(help="ISO 8601 moment, such as 2027-01-31T12:00:00Z.")
    ] = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="A scope beyond calling models, such as `manage`.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="The group that the key belongs to, by id.")
    ] = None,
    no_log: Annotated[
        bool, typer.Option("--no-log", help="Keep its requests out of logs.")
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it: this once, it is not kept."""
    body: dict[str, Any] = {"name": name, "noLog": no_log}
    if model:
        body |= {"modelAccessMode": "restricted", "allowedModels": model}
    if expires_at:
        body["expiresAt"] = expires_at
    if scope:
        body["scopes"] = scope
    if group:
        body["groupId"] = group
    created = KEYS.create(url, data_dir, body)
    _print_text(created, as_json=as_json)


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the keys."""
    KEYS.print_list(url, data_dir, as_json=as_json)


@app.command()
def revoke(
    key: Key,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Revoke a key: it is refused from the moment that this returns."""
    KEYS.delete(key, url, data_dir, as_json=as_json, verb="Revoked")


@app.command()
def regenerate(
    key: Key,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Give a key a new text and print it: this once. The old one is refused from the moment that this returns."""
    # Imported when it is needed: its HTTP client would slow `--help` down.
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        answer = instance.post(f"{KEYS.path}/{KEYS.find(instance, key)['id']}/regenerate")
    _print_text(answer, as_json=as_json)


@app.command()
def show(
    key: Key,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show every field of a key, but its text."""
    KEYS.show(key, url, data_dir, as_json=as_json)


@app.command()
def edit(
    key: Key,
    assignments: Assignments = None,
    from_file: SecretFile = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Change fields of a key, but its text; what is not named stays."""
    KEYS.change(key, fields_from(assignments, from_file), url, data_dir, as_json=as_json)


def _print_text(key: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show_json(key)
        return
    say(key["key"])
    say("Keep it: it cannot be shown again.", to_stderr=True)
