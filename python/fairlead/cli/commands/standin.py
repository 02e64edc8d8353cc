"""`fairlead standin`: the stand-in provider alone."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.errors import Refusal


def standin(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start an OpenAI-compatible provider that needs no network.

    It answers deterministically and misbehaves on request, by the model's name:
    `standin@chunks=20,gap_ms=10` or `standin@status=429,retry_after=3`.
    """
    from fairlead.standin.installed import check_standin

    check_standin()
    from fairlead.standin.server import serve

    try:
        serve(host, port)
    except OSError as error:
        raise Refusal(
            f"cannot listen on {host} port {port} ({error.strerror}): name another with --port."
        ) from None
