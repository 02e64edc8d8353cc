"""The issuer's two listeners, in the event loop of whoever runs them: control, or `fairlead issuer`."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import structlog
from starlette.types import ASGIApp

from fairlead.errors import Refusal
from fairlead.identity.issuer.admin import admin_app
from fairlead.identity.issuer.issuer import Issuer
from fairlead.identity.issuer.public import public_app
from fairlead.net.host import is_loopback
from fairlead.settings import ServeFields

ADMIN_HOST: Final = "127.0.0.1"
_BACKLOG: Final = 1024
_HEADER_READ_TIMEOUT_MS: Final = 10_000
_STOPS_WITHIN_S: Final = 5.0
_LISTENS_WITHIN_S: Final = 10.0
_ASK_EVERY_S: Final = 0.02

log = structlog.get_logger("fairlead.identity")


async def listen(
    issuer: Issuer, settings: ServeFields, on_ready: Callable[[], None] = lambda: None
) -> None:
    """Serves until it is cancelled; `on_ready` is called once both addresses are listened on.
    `Refusal` when one cannot be.
    """
    try:
        check_addresses(settings)
    except Refusal as refusal:
        log.error("the issuer does not start", reason=refusal.sentence)
        raise
    proxies = settings.service_trusted_proxies if settings.service_trust_proxy else 0
    token = settings.issuer_admin_token
    admin = admin_app(issuer, token.get_secret_value() if token else None)
    servers = [
        _server(
            public_app(issuer, trusted_proxies=proxies),
            settings.issuer_host,
            settings.issuer_port,
            settings,
        ),
        _server(admin, ADMIN_HOST, settings.issuer_admin_port, None),
    ]
    serving = [asyncio.create_task(server.serve()) for server in servers]
    telling = asyncio.create_task(_notify_when_ready(settings, on_ready))
    sweeping = asyncio.create_task(issuer.sweep())
    log.info("issuer started", port=settings.issuer_port, admin_port=settings.issuer_admin_port)
    try:
        # Each task ends only by failing.
        done, _ = await asyncio.wait([*serving, sweeping], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        raise RuntimeError("a listener of the issuer ended")
    finally:
        sweeping.cancel()
        telling.cancel()
        for server in servers:
            server.stop()
        await asyncio.wait([*serving, sweeping], timeout=_STOPS_WITHIN_S)
        for task in serving:
            task.cancel()


async def _notify_when_ready(settings: ServeFields, on_ready: Callable[[], None]) -> None:
    for host, port in (
        (settings.issuer_host, settings.issuer_port),
        (ADMIN_HOST, settings.issuer_admin_port),
    ):
        try:
            async with asyncio.timeout(_LISTENS_WITHIN_S):
                await _connect(host, port)
        except TimeoutError:
            log.error("the issuer does not answer on its port", port=port)
            return
    on_ready()


async def _connect(host: str, port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(_ASK_EVERY_S)
        else:
            writer.close()
            return


def check_addresses(settings: ServeFields) -> None:
    """`Refusal` when a port is taken, or when secrets would cross a network in clear."""
    host = settings.issuer_host
    if not is_loopback(host) and settings.tls_certificate is None:
        url = settings.issuer_public_url
        if url is None or not url.startswith("https://"):
            raise Refusal(
                f"ISSUER__HOST is {host}, which others can reach, and secrets would come in clear: "
                "give a certificate, or name the https address of a proxy of yours before it in "
                "ISSUER__PUBLIC_URL, or listen on 127.0.0.1."
            )
    for name, address, port in (
        ("ISSUER__PORT", host, settings.issuer_port),
        ("ISSUER__ADMIN_PORT", ADMIN_HOST, settings.issuer_admin_port),
    ):
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(
                address, port, type=socket.SOCK_STREAM
            )[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(where)
        except OSError as error:
            raise Refusal(
                f"{name}: {address} port {port} cannot be listened on ({error.strerror}): "
                "name another."
            ) from None


def _server(app: ASGIApp, host: str, port: int, tls: ServeFields | None) -> Any:
    from granian.constants import HTTPModes, Interfaces, SSLProtocols  # noqa: PLC0415 - not for every start
    from granian.http import HTTP1Settings  # noqa: PLC0415
    from granian.log import LogLevels  # noqa: PLC0415
    from granian.server.embed import Server  # noqa: PLC0415

    # Granian's embedded server warns at each start that it is experimental.
    logging.getLogger("_granian").setLevel(logging.ERROR)
    certificate: Path | None = tls.tls_certificate if tls else None
    return Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=_BACKLOG,
        backpressure=_BACKLOG,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_READ_TIMEOUT_MS),
        log_level=LogLevels.error,
        log_access=False,
        ssl_cert=certificate,
        ssl_key=tls.tls_key if tls else None,
        ssl_protocol_min=SSLProtocols.tls12,
    )
