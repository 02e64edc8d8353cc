"""`fairlead agent`: clients that may call agents, managed at the admin listener of a token issuer."""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote, urlsplit
from uuid import uuid4

import typer

from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import Json
from fairlead.cli.output import pick, print_message, show_json, show_table

app = typer.Typer(help="Clients that may call agents.", no_args_is_help=True)

_SCOPE: Final = "openid offline agent:read agent:write"
_TIMEOUT_S: Final = 15.0
_PART = re.compile(r"[A-Za-z0-9._-]{1,80}")

AdminUrl = Annotated[
    str,
    typer.Option("--admin-url", envvar="ISSUER__ADMIN_URL", help="The issuer's admin address."),
]
AdminToken = Annotated[
    str | None,
    typer.Option(
        envvar="ISSUER__ADMIN_TOKEN",
        hidden=True,
        help="Set it by environment: other users can see command lines.",
    ),
]
ADMIN_URL: Final = "http://127.0.0.1:20130"


@app.command()
def register(
    name: Annotated[
        str, typer.Argument(help="The client's name. It becomes part of the client's id.")
    ],
    owner: Annotated[
        str, typer.Option(help="The owner of the client. It becomes part of the client's id.")
    ] = "local",
    scope: Annotated[
        str, typer.Option(help="The scopes that it may request, separated by spaces.")
    ] = _SCOPE,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write the id and secret to this new file (mode 0600) instead of the screen."
        ),
    ] = None,
    admin_url: AdminUrl = ADMIN_URL,
    admin_token: AdminToken = None,
    as_json: Json = False,
) -> None:
    """Create a client and print its id and secret. The secret is shown only once."""
    for text, what in ((name, "NAME"), (owner, "--owner")):
        if _PART.fullmatch(text) is None:
            raise CommandFailed(f"{what} must be 1 to 80 letters, digits and . _ -.")
    secret = secrets.token_urlsafe(32)
    body = {
        "client_id": f"did:fairlead:{owner}:{name}:{uuid4()}",
        "client_name": name,
        "client_secret": secret,
        "grant_types": ["client_credentials"],
        "response_types": ["token"],
        "scope": scope,
        "token_endpoint_auth_method": "client_secret_post",
    }
    if save is not None and save.exists():
        raise CommandFailed(f"{save} already exists: name a new file.")
    made = _request("POST", admin_url, "/admin/clients", admin_token, body).json()
    shown = {
        "client_id": made["client_id"],
        "client_secret": secret,
        "scope": made.get("scope", scope),
    }
    if save is not None:
        _write_new(save, shown)
        del shown["client_secret"]
        shown["saved"] = str(save)
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    for field, value in shown.items():
        print_message(f"{field}: {value}")
    if save is None:
        print_message("Save the secret now: it cannot be shown again.", to_stderr=True)


@app.command("list")
def list_(
    admin_url: AdminUrl = ADMIN_URL, admin_token: AdminToken = None, as_json: Json = False
) -> None:
    """List the clients."""
    clients = _clients(admin_url, admin_token)
    if as_json:
        show_json({"clients": clients, "total": len(clients)})
        return
    names = ("client_id", "client_name", "scope", "created_at")
    show_table(
        ["client_id", "name", "scope", "created"],
        [pick(client, *names) for client in clients],
        empty="There are no clients: create one with `fairlead agent register <name>`.",
    )


@app.command()
def revoke(
    client: Annotated[str, typer.Argument(help="The client's id, or its name if only one has it.")],
    tokens_only: Annotated[
        bool, typer.Option("--tokens-only", help="Revoke its tokens and keep the client.")
    ] = False,
    admin_url: AdminUrl = ADMIN_URL,
    admin_token: AdminToken = None,
    as_json: Json = False,
) -> None:
    """Delete a client and revoke its tokens."""
    client_id = client if client.startswith("did:") else _client_id(admin_url, admin_token, client)
    if tokens_only:
        path = f"/admin/oauth2/tokens?client_id={quote(client_id, safe='')}"
    else:
        path = f"/admin/clients/{quote(client_id, safe='')}"
    _request("DELETE", admin_url, path, admin_token)
    if as_json:
        print(json.dumps({"client_id": client_id, "deleted": not tokens_only}))
    else:
        print_message(f"{'Ended the tokens of' if tokens_only else 'Deleted'} {client_id}.")


def _client_id(admin_url: str, token: str | None, name: str) -> str:
    """The id of the only client with this name or id. Raises `CommandFailed`."""
    found = [
        client["client_id"]
        for client in _clients(admin_url, token)
        if name in (client.get("client_name"), client["client_id"])
    ]
    if len(found) != 1:
        many = f"{len(found)} clients have" if found else "no client has"
        raise CommandFailed(f"{many} the id or name {name}: `fairlead agent list` shows ids.")
    return str(found[0])


def _clients(admin_url: str, token: str | None) -> list[dict[str, Any]]:
    """All clients of the issuer, page after page."""
    clients: list[dict[str, Any]] = []
    path: str | None = "/admin/clients?page_size=500"
    while path is not None:
        answer = _request("GET", admin_url, path, token)
        clients += answer.json()
        path = answer.links.get("next", {}).get("url")
    return clients


def _request(
    method: str, admin_url: str, path: str, token: str | None, body: dict[str, Any] | None = None
) -> Any:
    """The issuer's answer to a request that succeeded. Raises `CommandFailed` with the issuer's own sentence."""
    import httpx

    from fairlead.net.host import is_loopback

    parts = urlsplit(admin_url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise CommandFailed(
            f"--admin-url is {admin_url}, another machine by plain http, and secrets would cross the "
            "network in clear: name its https address, or a loopback address of a tunnel."
        )
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = admin_url.rstrip("/") + path
    try:
        answer = httpx.request(
            method, url, headers=headers, json=body, timeout=_TIMEOUT_S, trust_env=False
        )
        document = answer.json() if answer.content else {}
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CommandFailed(
            f"no issuer answers at {admin_url} ({type(error).__name__}): start one with `fairlead "
            "issuer` or ISSUER__ENABLED=true, or name its admin address with --admin-url."
        ) from None
    except ValueError:
        raise CommandFailed(f"{admin_url} is no issuer's admin address.") from None
    if not answer.is_success:
        problem = document if isinstance(document, dict) else {}
        sentence = problem.get("error_description") or problem.get("error")
        raise CommandFailed(str(sentence or f"the issuer answered {answer.status_code}."))
    return answer


def _write_new(path: Path, document: dict[str, str]) -> None:
    """Writes a file that only its owner reads. Raises `CommandFailed`, also where there is one already."""
    import os

    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written ({error.strerror}).") from None
