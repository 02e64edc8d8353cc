"""`fairlead tokens`: access tokens, with which the management is reached from elsewhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json
from fairlead.cli.record_commands import RecordCommands

app = typer.Typer(help="Access tokens for management.", no_args_is_help=True)

TOKENS: Final = Collection(
    path="/api/auth/tokens",
    key="tokens",
    kind="token",
    columns={
        "id": "id",
        "name": "name",
        "scope": "scope",
        "token": "tokenPreview",
        "expires": "expiresAt",
        "created": "createdAt",
    },
    empty="There are no tokens: create one with `fairlead tokens create <name>`.",
)


class TokenScope(StrEnum):
    """The permissions of a token."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


Token = Annotated[str, typer.Argument(metavar="TOKEN", help="The token's id or name.")]

COMMANDS: Final = RecordCommands(app, TOKENS, Token)


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="A name to recognise the token by.")],
    scope: Annotated[
        TokenScope,
        typer.Option(help="read: view; write: also change; admin: also security settings."),
    ] = TokenScope.READ,
    expires_at: Annotated[
        str | None, typer.Option(help="When it expires, in ISO 8601, such as 2027-01-31T12:00:00Z.")
    ] = None,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Create a token for `fairlead login` and print it. It is shown only once."""
    body: dict[str, Any] = {"name": name, "scope": scope.value}
    if expires_at:
        body["expiresAt"] = expires_at
    created = TOKENS.create(url, data_dir, body)
    if as_json:
        show_json(created)
        return
    print_message(created["token"])
    print_message("Save the token now: it cannot be shown again.", to_stderr=True)


COMMANDS.add_list("List the tokens.")
COMMANDS.add_delete("Revoke a token. It stops working at once.", "revoke", "Revoked")
