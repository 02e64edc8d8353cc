"""The identity provider that people sign in at: from the environment, else from the settings.

The environment wins as a whole: with `SERVICE_OIDC_ISSUER`, issuer, client and secret all come from there, so
that a stored secret never goes to another issuer. Password sign-in is off when either says so. `/api/settings`
shows values from the environment but cannot change them.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from fairlead.errors import Internal
from fairlead.process.setting_names import variable_of
from fairlead.settings import ServeFields
from fairlead.store.file import Connection
from fairlead.store.operator_settings import OperatorSettings, read_operator_settings
from fairlead.store.sealer import Sealer

SEALED_AS = "operator-setting:oidc_client_secret"
_OF_THE_PROVIDER = ("oidc_issuer", "oidc_client_id", "oidc_client_secret")
_PASSWORDS_OFF = "oidc_local_auth_disabled"


@dataclass(frozen=True, slots=True)
class SignOn:
    """The identity provider in force. `issuer` and `client_id` are both set, or both None."""

    issuer: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None
    local_auth_disabled: bool = False


def read_sign_on(con: Connection, config: ServeFields, sealer: Sealer) -> SignOn:
    """The identity provider in force now."""
    settings = in_force(read_operator_settings(con), config)
    secret = settings.oidc_client_secret
    if config.service_oidc_issuer is None and secret is not None:
        secret = open_secret(sealer, secret)
    return SignOn(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=secret,
        local_auth_disabled=settings.oidc_local_auth_disabled,
    )


def ruled_by_environment(config: ServeFields) -> dict[str, tuple[str, Any]]:
    """Maps each setting that the environment overrides to its variable and value."""
    names: tuple[str, ...] = _OF_THE_PROVIDER if config.service_oidc_issuer is not None else ()
    names += (_PASSWORDS_OFF,) if config.service_oidc_local_auth_disabled else ()
    return {
        name: (variable_of(f"service_{name}"), getattr(config, f"service_{name}")) for name in names
    }


def in_force(settings: OperatorSettings, config: ServeFields) -> OperatorSettings:
    """The stored settings, with those that the environment overrides replaced."""
    ruled = {name: value for name, (_, value) in ruled_by_environment(config).items()}
    return settings.model_copy(update=ruled) if ruled else settings


def seal_secret(sealer: Sealer, secret: SecretStr) -> SecretStr:
    """The secret in its stored form."""
    sealed = sealer.seal(SEALED_AS, secret.get_secret_value().encode())
    return SecretStr(base64.b64encode(sealed).decode())


def open_secret(sealer: Sealer, stored: SecretStr) -> SecretStr:
    """Decrypts a secret stored by `seal_secret`; `Internal` if the key is another."""
    try:
        sealed = base64.b64decode(stored.get_secret_value(), validate=True)
    except binascii.Error:
        raise Internal("The stored client secret of the identity provider is damaged.") from None
    return SecretStr(sealer.unseal(SEALED_AS, sealed).decode())
