"""The token issuer in a separate process: one event loop, two listeners, `issuer.duckdb`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Final

import uvloop

from fairlead.control.logs import configure_logs
from fairlead.identity.issuer.issuer import open_issuer
from fairlead.identity.issuer.listen import ADMIN_HOST, listen
from fairlead.serve.tls import check_certificate
from fairlead.settings.secret_key import with_secret_key
from fairlead.settings.serve import ServeSettings
from fairlead.store.prepare import make_data_dir
from fairlead.store.sealer import load_key

EXIT_STORAGE_LOST: Final = 74


def serve_issuer(settings: ServeSettings, print_line: Callable[[str], None]) -> None:
    """Serves until SIGTERM, SIGINT or SIGHUP. `Refusal` says why it does not start."""
    settings = with_secret_key(settings)
    check_certificate(settings)
    configure_logs()
    make_data_dir(settings.data_dir)
    given = settings.secret_key.get_secret_value() if settings.secret_key else None
    uvloop.run(_serve(settings, load_key(settings.data_dir, given), print_line))


async def _serve(
    settings: ServeSettings, secret_key: bytes, print_line: Callable[[str], None]
) -> None:
    url = settings.issuer_own_url
    async with open_issuer(
        settings.data_dir, secret_key, url, settings.issuer_token_ttl_s
    ) as issuer:
        # Exits as control does on a fatal database error, to be restarted by its process manager.
        issuer.database.on_fatal = lambda: os._exit(EXIT_STORAGE_LOST)
        admin_url = f"http://{ADMIN_HOST}:{settings.issuer_admin_port}"
        ready = f"fairlead issuer ready {url} (admin {admin_url})"
        listening = asyncio.create_task(listen(issuer, settings, lambda: print_line(ready)))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, listening.cancel)
        try:
            await listening
        except asyncio.CancelledError:
            return
