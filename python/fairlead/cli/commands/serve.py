"""`fairlead serve`: the gateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


# Long by its signature: Typer reads each option from a parameter.
def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on.", show_default="20128")
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(
            help="The role of this node: all, relay (model calls only) or control (management only).",
            show_default="all",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Relay worker processes.", show_default="1")
    ] = None,
    front: Annotated[
        str | None,
        typer.Option(
            help="The HTTP server: granian, or native (the engine's own).",
            show_default="granian",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Relay threads, with --front native.", show_default="1"),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The directory for all data.", show_default="~/.fairlead")
    ] = None,
    demo: Annotated[
        bool | None,
        typer.Option("--demo", help="Also start a demo provider that needs no network."),
    ] = None,
    allow_unauthenticated_bind: Annotated[
        bool | None,
        typer.Option(
            "--allow-unauthenticated-bind",
            help="Listen on a public address even if callers need no key.",
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file with the certificate chain.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file with the private key.")] = None,
) -> None:
    """Start the gateway and keep it running until SIGTERM or Ctrl-C.

    Every option has an environment variable: --data-dir is FAIRLEAD_DATA_DIR.

    Set REQUIRE_API_KEY=true to require keys from callers, and INITIAL_PASSWORD to set the first password.
    """
    from fairlead.serve.start import start
    from fairlead.settings.serve import ServeSettings

    os.umask(0o077)
    settings = ServeSettings.load(
        host=host,
        port=port,
        role=role,
        workers=workers,
        front=front,
        threads=threads,
        data_dir=data_dir,
        demo=demo,
        allow_unauthenticated_bind=allow_unauthenticated_bind,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
    )
    start(settings)
