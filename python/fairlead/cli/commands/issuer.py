"""`fairlead issuer`: the token issuer alone, in a separate process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def issuer(
    port: Annotated[
        int | None, typer.Option(help="Port of the token endpoint.", show_default="20131")
    ] = None,
    admin_port: Annotated[
        int | None,
        typer.Option(help="Port of the admin listener, on loopback.", show_default="20130"),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address of the token endpoint.", show_default="127.0.0.1")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="The directory of issuer.duckdb.", show_default="~/.fairlead"),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file with the certificate chain.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file with the private key.")] = None,
) -> None:
    """Issue access tokens to clients of agents until SIGTERM or Ctrl-C.

    Options can be given by environment too: ISSUER__PORT, ISSUER__ADMIN_PORT, ISSUER__HOST, ISSUER__PUBLIC_URL,
    ISSUER__ADMIN_TOKEN, ISSUER__TOKEN_TTL_S. A gateway runs the same issuer inside with ISSUER__ENABLED=true.
    """
    from fairlead.serve.issuer import serve_issuer
    from fairlead.settings.serve import ServeSettings

    os.umask(0o077)
    settings = ServeSettings.load(
        issuer_port=port,
        issuer_admin_port=admin_port,
        issuer_host=host,
        data_dir=data_dir,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
    )
    serve_issuer(settings, lambda line: print(line, flush=True))
