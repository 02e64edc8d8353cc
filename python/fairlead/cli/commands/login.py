"""`fairlead login`: a credential for a gateway elsewhere, checked there and kept as a context."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from fairlead.cli.credential import read_credential
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import Json
from fairlead.cli.output import print_message, show_json

if TYPE_CHECKING:
    from fairlead.cli.context_file import GatewayContext


def login(
    address: Annotated[
        str, typer.Argument(help="The gateway's address, such as https://gateway.example.")
    ],
    name: Annotated[
        str | None, typer.Option(help="The context's name. Default: the host name.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the credential, `-` for standard input. Default: a prompt asks for it."
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help="File with an API key for calling models, which an access token cannot do."
        ),
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="PEM file with the certificate authorities to trust.")
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Do not verify the certificate. Every command prints a warning."
        ),
    ] = False,
    device: Annotated[
        bool,
        typer.Option("--device", help="Sign in by approving a code in a browser, on any machine."),
    ] = False,
    scope: Annotated[
        str | None,
        typer.Option(
            help="The scope of the token of --device: read, write or admin. Default: write."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Store a credential for a gateway, and use that gateway from now on.

    With --device a person with management rights approves a code at the gateway's page, and the command stores
    an access token of that person for 90 days.

    Else it is an access token (`flm_...`, which the owner makes with `fairlead tokens create`) or an API key
    (`sk-fl-...`).

    An access token manages and calls no models: `--api-key-file` adds a key for `chat`, `repl` and `models`.
    """
    from fairlead.cli.context_file import GatewayContext, changed_contexts, context_name
    from fairlead.cli.gateway_address import check_confidential

    url = address.rstrip("/")
    check_confidential(url)
    chosen = context_name(name or urlsplit(url).hostname or "")
    trusted = None if ca_file is None else str(ca_file.expanduser().absolute())
    if device:
        from fairlead.cli.device_login import device_token

        if token_file is not None:
            raise CommandFailed("--device and --token-file are two ways to sign in: give one.")
        gateway = GatewayContext(url, "", None, trusted, insecure=insecure)
        token = device_token(gateway, scope or "write")
    elif scope is not None:
        raise CommandFailed("--scope is for --device: an existing token has its own scope.")
    else:
        token = read_credential(token_file, "Access token or API key")
    api_key = None if api_key_file is None else read_credential(api_key_file, "API key")
    context = GatewayContext(url, token, api_key, trusted, insecure=insecure)
    manages = _check(context)
    with changed_contexts() as contexts:
        contexts.by_name[chosen] = context
        contexts.current = chosen
    if as_json:
        show_json({"context": chosen, "url": url, "manages": manages})
        return
    reach = "" if manages else " It calls models; management is closed to it."
    print_message(f"Signed in at {url} as context {chosen}.{reach}")
    print_message("`fairlead contexts use local` goes back to this machine.", to_stderr=True)


def _check(context: GatewayContext) -> bool:
    """Whether the credential opens management; if not, it must open the list of models. Raises `CommandFailed`."""
    from fairlead.cli.gateway_address import signed_in
    from fairlead.cli.instance import Instance

    with Instance.of(signed_in(context)) as instance:
        code, readiness = instance.probe("/readyz")
        if code not in (200, 503) or not readiness:
            raise CommandFailed(f"{context.url} is no gateway of this kind: check the address.")
        manages = instance.request("GET", "/api/monitoring/health").is_success
        if not manages or context.api_key is not None:
            instance.get("/v1/models")
    return manages
