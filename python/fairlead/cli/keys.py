"""`fairlead keys`: the API keys that callers hold."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from fairlead.cli.options import DATA_DIR, DataDir, Json, Url

app = typer.Typer(help="API keys that callers hold.", no_args_is_help=True)


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
    no_log: Annotated[
        bool, typer.Option("--no-log", help="Keep its requests out of logs.")
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it: this once, it is not kept."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json

    body: dict[str, Any] = {"name": name, "noLog": no_log}
    if model:
        body |= {"modelAccessMode": "restricted", "allowedModels": model}
    if expires_at:
        body["expiresAt"] = expires_at
    if scope:
        body["scopes"] = scope
    with Instance(url, data_dir) as instance:
        created = instance.post("/api/keys", body)
    if as_json:
        show_json(created)
        return
    print(created["key"])
    print("Keep it: it cannot be shown again.", file=sys.stderr)


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the keys."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import pick, show_json, show_table

    with Instance(url, data_dir) as instance:
        keys = instance.every("/api/keys", "keys")
    if as_json:
        show_json({"keys": keys, "total": len(keys)})
        return
    names = ("id", "name", "keyPreview", "isActive", "expiresAt", "createdAt")
    show_table(
        ["id", "name", "key", "active", "expires", "created"],
        [pick(key, *names) for key in keys],
        empty="There are no keys: make one with `fairlead keys create <name>`.",
    )


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The key's id or name.")],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Revoke a key: it is refused from the moment that this returns."""
    from fairlead.cli.instance import Instance
    from fairlead.cli.output import show_json
    from fairlead.cli.selection import one_of

    with Instance(url, data_dir) as instance:
        found = one_of(instance.every("/api/keys", "keys"), key, "key")
        answer = instance.delete(f"/api/keys/{found['id']}")
    if as_json:
        show_json({"id": found["id"], "name": found["name"], **answer})
    else:
        print(f"Revoked {found['name']} ({found['id']}).")
