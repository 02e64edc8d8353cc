"""`fairlead groups`: groups of keys, and their parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from fairlead.cli.assignment import Assignments, fields_from
from fairlead.cli.commands.completion import complete_group
from fairlead.cli.key_collections import GROUPS, KEYS
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_table
from fairlead.cli.record_commands import RecordCommands

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

app = typer.Typer(help="Groups of keys with shared limits.", no_args_is_help=True)
NO_GROUP: Final = "none"

Group = Annotated[
    str,
    typer.Argument(metavar="GROUP", help="The group's id or name.", autocompletion=complete_group),
]
User = Annotated[str, typer.Argument(metavar="EMAIL", help="The user's email address.")]

COMMANDS: Final = RecordCommands(app, GROUPS, Group)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The group's name.")],
    parent: Annotated[
        str | None,
        typer.Option(help="The parent group, by id or name. Groups nest up to three levels."),
    ] = None,
    monthly_usd: Annotated[
        float | None,
        typer.Option(
            min=0, help="The most that all its keys together may spend in a month, in USD."
        ),
    ] = None,
    assignments: Assignments = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a group."""
    from fairlead.cli.instance import Instance

    body: dict[str, Any] = {"name": name}
    if assignments:
        body |= fields_from(assignments, None)
    if monthly_usd is not None:
        body["monthlyUsageLimitUsd"] = monthly_usd
    with Instance(url, data_dir) as instance:
        if parent:
            body["parentId"] = GROUPS.find(instance, parent)["id"]
        made = instance.post(GROUPS.path, body)
    if as_json:
        show_json(made)
    else:
        print_message(f"Made {made['name']} ({made['id']}).")


COMMANDS.add_list("List the groups.")
COMMANDS.add_show("Show every field of a group.")
COMMANDS.add_edit("Change fields of a group. Fields that you do not name stay as they are.")


@app.command()
def delete(
    group: Group,
    move_keys_to: Annotated[
        str | None,
        typer.Option(help="The group to move its keys to, by id or name, or `none`."),
    ] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete a group. If it has keys, --move-keys-to says where they go."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = GROUPS.find(instance, group)
        query = {}
        if move_keys_to is not None:
            is_none = move_keys_to == NO_GROUP
            query["moveKeysTo"] = NO_GROUP if is_none else GROUPS.find(instance, move_keys_to)["id"]
        answer = instance.delete(f"{GROUPS.path}/{found['id']}", **query)
    if as_json:
        show_json({"id": found["id"], "name": found["name"], **answer})
    else:
        print_message(f"Deleted {found['name']} ({found['id']}).")


@app.command()
def spending(
    group: Group, data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False
) -> None:
    """Show what the group and its parents have spent and have left."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = GROUPS.find(instance, group)
        answer = instance.get(f"{GROUPS.path}/{found['id']}/spending")
    if as_json:
        show_json(answer)
        return
    rows = [
        [
            level["name"],
            *(one[name] for name in ("field", "unit", "limit", "used", "left")),
            one["resetsAt"],
        ]
        for level in answer["levels"]
        for one in level["limits"]
    ]
    headings = ["group", "limit", "unit", "amount", "used", "left", "resets"]
    show_table(headings, rows, empty="It has no limits.")


@app.command()
def keys(
    group: Group, data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False
) -> None:
    """List the keys in a group."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = GROUPS.find(instance, group)
        records = instance.list_all(f"{GROUPS.path}/{found['id']}/keys", "keys")
    KEYS.print_records(records, as_json=as_json)


@app.command()
def members(
    group: Group, data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False
) -> None:
    """List the members of a group."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        answer = instance.get(f"{_path(instance, group)}/members")
    if as_json:
        show_json(answer)
        return
    rows = [
        [each[name] for name in ("userId", "name", "email", "role", "since")]
        for each in answer["members"]
    ]
    show_table(["id", "name", "email", "role", "since"], rows, empty="It has no members.")


@app.command("add-member")
def add_member(
    group: Group,
    user: User,
    role: Annotated[
        Literal["admin", "member"],
        typer.Option(help="`admin` can change every key of the group and its members."),
    ] = "member",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Add a user to a group, or change their role."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        answer = instance.post(f"{_path(instance, group)}/members", {"email": user, "role": role})
    if as_json:
        show_json(answer)
    else:
        print_message(f"{user} is {role} of {group}.")


@app.command("remove-member")
def remove_member(
    group: Group,
    user: User,
    revoke_keys: Annotated[
        bool,
        typer.Option("--revoke-keys", help="Also revoke the keys that they created in the group."),
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove a user from a group."""
    from fairlead.cli.failure import CommandFailed
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        path = f"{_path(instance, group)}/members"
        found = [each for each in instance.get(path)["members"] if each["email"] == user.casefold()]
        if not found:
            raise CommandFailed(f"{user} is no member of {group}.")
        query = {"revokeKeys": str(revoke_keys).lower()}
        answer = instance.delete(f"{path}/{found[0]['userId']}", **query)
    if as_json:
        show_json(answer)
    else:
        print_message(f"{user} is no member of {group} any more.")


def _path(instance: Instance, group: str) -> str:
    return f"{GROUPS.path}/{GROUPS.find(instance, group)['id']}"
