"""Checks the role of a node and what it needs, before anything is started."""

from __future__ import annotations

from typing import Any, Final

from pydantic import SecretStr

from fairlead.errors import Refusal
from fairlead.net.node_link import (
    check_node_token,
    control_context,
    read_control_urls,
    read_listen,
    relay_context,
)
from fairlead.process.setting_names import flag_and_variable, variable_of
from fairlead.settings.secret_key import read_secret_file
from fairlead.settings.serve import ServeSettings

_NEEDED: Final = {
    "control": {
        "control_listen": "the address on which relays reach it",
        "node_token": "what relays show to it",
        "node_certificate": "the certificate of that address",
        "node_key": "the key of its certificate",
        "database_url": "the database that controls share",
    },
    "relay": {
        "control_urls": "the controls that it asks",
        "node_token": "what it shows to them",
        "secret_key": "the key of secrets that the controls have (or `_FILE`, `_COMMAND`)",
    },
}
_REFUSED: Final = {
    "control": ("control_urls", "demo", "acp_tools"),
    "relay": ("control_listen", "database_url", "demo", "acp_tools"),
}


def with_node_token(settings: ServeSettings) -> ServeSettings:
    """The settings with the token from its file, where they name one."""
    path = settings.node_token_file
    if path is None:
        return settings
    file_variable = variable_of("node_token_file")
    if settings.node_token is not None:
        raise Refusal(
            f"{variable_of('node_token')} and {file_variable} are set together: leave one of them."
        )
    text = read_secret_file(path, file_variable).strip()
    try:
        check_node_token(text)
    except ValueError as error:
        raise Refusal(f"{file_variable}: what it holds {error}.") from None
    return settings.model_copy(update={"node_token": SecretStr(text)})


def check_role(settings: ServeSettings) -> None:
    """Raises `Refusal` where settings and role do not fit together."""
    role = flag_and_variable("role")
    if settings.role == "all":
        if given := settings.given_role_fields():
            raise Refusal(
                f"{variable_of(given[0])} is set, but only nodes with a separate role use it: "
                f"set {role} to relay or control, or leave it out."
            )
        return
    for name, what in _NEEDED[settings.role].items():
        if not getattr(settings, name):
            raise Refusal(
                f"{role} is {settings.role}, which needs {what}: set {variable_of(name)}."
            )
    for name in _REFUSED[settings.role]:
        if getattr(settings, name, None):
            raise Refusal(
                f"{flag_and_variable(name)} is set, and a node with {role} {settings.role} does not use it: "
                "leave it out."
            )
    if settings.role == "control" and settings.workers != 1:
        raise Refusal(
            f"{flag_and_variable('workers')} is {settings.workers}, and a node with {role} control has one "
            "worker, for its own calls: leave it out."
        )
    if settings.role == "control" and not settings.is_loopback:
        raise Refusal(
            f"{flag_and_variable('host')} is {settings.host}, and a node with {role} control accepts only its own "
            f"calls: leave it out, and set the address for relays with {variable_of('control_listen')}."
        )
    if (settings.node_certificate is None) != (settings.node_key is None):
        raise Refusal(
            f"{variable_of('node_certificate')} and {variable_of('node_key')} belong together: set both."
        )
    _check_files(settings)


def _check_files(settings: ServeSettings) -> None:
    certificate, key, ca = settings.node_certificate, settings.node_key, settings.node_ca
    try:
        if settings.role == "control" and certificate is not None and key is not None:
            control_context(certificate, key, ca)
        else:
            relay_context(certificate, key, ca)
    except (OSError, ValueError):
        raise Refusal(
            f"{variable_of('node_certificate')}, {variable_of('node_key')} and {variable_of('node_ca')} must be PEM "
            "files of a certificate, its key without a password, and authorities: name files that belong together."
        ) from None


def tunnel_document(settings: ServeSettings) -> dict[str, Any] | None:
    """The document of `FAIRLEAD_TUNNEL_CONFIG`, but for what is made for each start; None for a node that is all."""
    if settings.role == "all" or settings.node_token is None:
        return None
    listen = read_listen(settings.control_listen) if settings.control_listen else None
    controls = read_control_urls(settings.control_urls) if settings.control_urls else []
    certificate, key, ca = settings.node_certificate, settings.node_key, settings.node_ca
    return {
        "data_dir": str(settings.data_dir),
        "token": settings.node_token.get_secret_value(),
        "workers": settings.workers,
        "listen": None if listen is None else {"host": listen.host, "port": listen.port},
        "controls": [{"host": each.host, "port": each.port} for each in controls],
        "certificate": str(certificate) if certificate else None,
        "key": str(key) if key else None,
        "ca": str(ca) if ca else None,
    }
