"""The start of `fairlead serve`: settings are checked and made plain values, and the process becomes the supervisor."""

from __future__ import annotations

from typing import NoReturn

from fairlead import __version__
from fairlead.coding_tools.acp.config import acp_document
from fairlead.process.vectors import vector_files
from fairlead.serve.instance import Instance, become_supervisor
from fairlead.serve.role import check_role, tunnel_document, with_node_token
from fairlead.serve.tls import check_certificate
from fairlead.settings.secret_key import with_secret_key
from fairlead.settings.serve import ServeSettings
from fairlead.standin.installed import check_standin


def start(settings: ServeSettings) -> NoReturn:
    """Runs an instance in this process until it is stopped. `Refusal` gives the obstacle."""
    # Without a database there is no stored password; with one, it is known only when it was read.
    has_file = (settings.data_dir / "state.duckdb").exists()
    settings.check(
        password_stored=has_file or settings.database_url is not None or settings.role == "relay"
    )
    settings = with_node_token(with_secret_key(settings))
    check_role(settings)
    check_certificate(settings)
    if settings.demo:
        # Before anything is started, and not as the failure of a child.
        check_standin()
    become_supervisor(instance_of(settings))


def instance_of(settings: ServeSettings) -> Instance:
    """The plain values of settings."""
    control = settings.control_config()
    tunnel = tunnel_document(settings)
    return Instance(
        data_dir=str(settings.data_dir),
        host=settings.host,
        port=settings.port,
        front=settings.front,
        workers=settings.workers,
        max_open_streams=settings.max_open_streams,
        drain_ms=settings.drain_delay_ms + settings.drain_ms,
        control_silence_ms=settings.control_silence_ms,
        demo=settings.demo,
        require_api_key=settings.require_api_key,
        is_protected=settings.is_protected,
        are_passwords_off=settings.service_oidc_local_auth_disabled,
        tls_certificate=str(settings.tls_certificate) if settings.tls_certificate else None,
        tls_key=str(settings.tls_key) if settings.tls_key else None,
        secret_key=control["secret_key"],
        other_secret_key=control["other_secret_key"],
        initial_password=control["initial_password"],
        control=control,
        relay=settings.relay_config(version=__version__, vectors=vector_files()),
        listener=settings.listener_config(),
        acp=acp_document(settings),
        role=settings.role,
        tunnel=tunnel,
    )
