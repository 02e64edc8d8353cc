"""`fairlead owner`: the account of the person who may do everything on the instance."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from fairlead.cli.failure import CommandFailed
from fairlead.cli.instance_lock import is_in_use
from fairlead.cli.options import DATA_DIR, DataDir, Url

app = typer.Typer(help="The owner's account.", no_args_is_help=True)


@app.callback()
def owner() -> None:
    """The owner's account."""


@app.command("set-password")
@app.command("reset-password")
def reset_password(
    generate: Annotated[
        bool, typer.Option("--generate", help="Generate a random password and print it.")
    ] = False,
    from_stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the password from one line of standard input.")
    ] = False,
    remove_second_factor: Annotated[
        bool, typer.Option("--remove-second-factor", help="Also turn off the second factor.")
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
) -> None:
    """Set the owner's password, and create the owner if there is none. All of the owner's sessions end.

    It works whether or not the gateway is running. `set-password` and `reset-password` are the same command.
    """
    from fairlead.cli.instance import Instance

    password = _password(generate=generate, from_stdin=from_stdin)
    folder = data_dir.expanduser().absolute()
    if url is not None or is_in_use(folder):
        body = {"newPassword": password, "removeSecondFactor": remove_second_factor}
        with Instance(url, folder) as instance:
            instance.post("/api/auth/owner/password", body)
        place = "The running instance"
    else:
        _reset_offline(folder, password, remove_second_factor=remove_second_factor)
        place = "The data directory"
    print(f"{place} has the owner's new password; all their sessions have ended.", file=sys.stderr)
    if generate:
        print(password)


def _password(*, generate: bool, from_stdin: bool) -> str:
    """A new password: random, from standard input, or typed twice. Raises `CommandFailed`."""
    import secrets

    from pydantic import TypeAdapter, ValidationError

    from fairlead.identity.fields import NewPassword

    if generate:
        return secrets.token_urlsafe(18)
    if from_stdin or not sys.stdin.isatty():
        text = sys.stdin.readline().rstrip("\r\n")
    else:
        text = str(typer.prompt("New password", hide_input=True, confirmation_prompt=True))
    try:
        TypeAdapter(NewPassword).validate_python(text)
    except ValidationError as error:
        raise CommandFailed(f"the password {error.errors()[0]['msg']}.") from None
    return text


def _reset_offline(folder: Path, password: str, *, remove_second_factor: bool) -> None:
    """Writes the new password into the database itself, under the lock that a running instance holds."""
    import asyncio

    from fairlead.identity.account_router import reset_owner
    from fairlead.identity.password import PasswordChecker
    from fairlead.serve.directory import DataDirectory
    from fairlead.settings.serve import ServeSettings
    from fairlead.store.state_database import open_state

    if not folder.is_dir():
        raise CommandFailed(f"{folder} does not exist: name the data directory with --data-dir.")
    os.umask(0o077)
    checker = PasswordChecker()
    try:
        digest = asyncio.run(checker.hash(password))
    finally:
        checker.close()
    url = ServeSettings.load(data_dir=folder).database_url

    async def write() -> None:
        database = open_state(folder, url.get_secret_value() if url else None, "owner")
        try:
            await database.write(
                lambda con: reset_owner(con, digest, without_second_factor=remove_second_factor)
            )
        finally:
            await database.close()

    with DataDirectory(folder):
        asyncio.run(write())
        # A relay starts from the last snapshot, in which the ended sessions are still valid.
        (folder / "snapshot.json").unlink(missing_ok=True)
