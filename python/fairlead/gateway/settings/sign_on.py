"""Checks of changes to single sign-on."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr
from pydantic.alias_generators import to_camel

from fairlead.errors import Conflict, InvalidRequest
from fairlead.settings import ServeFields
from fairlead.store.operator_settings import SHOWN_SECRET, OperatorSettings
from fairlead.store.sign_on import in_force, ruled_by_environment


def without_ruled(
    sent: dict[str, Any], before: OperatorSettings, config: ServeFields
) -> dict[str, Any]:
    """The fields of `sent` to store: without those that the environment sets and those sent back as
    `***`. `Conflict` for a value that differs from the environment's.
    """
    left = dict(sent)
    for name, (variable, value) in ruled_by_environment(config).items():
        if name not in left:
            continue
        given = left.pop(name)
        if given != value and not (_is_shown(given) and value is not None):
            raise Conflict(
                f"{to_camel(name)} is set by the environment: change {variable} and start fairlead "
                "again, or unset it.",
                param=to_camel(name),
            )
    if _is_shown(left.get("oidc_client_secret")):
        if before.oidc_client_secret is None:
            raise InvalidRequest(
                f"oidcClientSecret {SHOWN_SECRET} stands for the stored secret, and none is stored: send it.",
                param="oidcClientSecret",
            )
        del left["oidc_client_secret"]
    return left


def check_sign_on(before: OperatorSettings, sent: dict[str, Any], config: ServeFields) -> None:
    """`InvalidRequest` for settings that would leave half a provider, no way to sign in, or a
    secret sent to another issuer than it was given for.
    """
    after = before.model_copy(update=sent)
    if (after.oidc_issuer is None) != (after.oidc_client_id is None):
        missing = "oidcClientId" if after.oidc_client_id is None else "oidcIssuer"
        raise InvalidRequest(
            "oidcIssuer and oidcClientId need each other: send both, or null for both.",
            param=missing,
        )
    is_moved = after.oidc_issuer != before.oidc_issuer
    if is_moved and before.oidc_client_secret is not None and "oidc_client_secret" not in sent:
        raise InvalidRequest(
            "The stored oidcClientSecret belongs to another issuer: send the new issuer's, or null.",
            param="oidcClientSecret",
        )
    if after.oidc_issuer is None and after.oidc_client_secret is not None:
        raise InvalidRequest(
            "oidcClientSecret also needs oidcIssuer and oidcClientId.",
            param="oidcClientSecret",
        )
    if after.oidc_local_auth_disabled and in_force(after, config).oidc_issuer is None:
        raise InvalidRequest(
            "oidcLocalAuthDisabled without oidcIssuer leaves no way to sign in: name the identity "
            "provider, or leave passwords on.",
            param="oidcLocalAuthDisabled",
        )


def _is_shown(given: Any) -> bool:
    return isinstance(given, SecretStr) and given.get_secret_value() == SHOWN_SECRET
