"""Rules for the credential of a connection: which kinds a provider takes, and whether all of it is
there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from fairlead.errors import InvalidRequest
from fairlead.gateway.nodes.table import Node
from fairlead.gateway.providers.credentials import Credentials
from fairlead.gateway.providers.endpoint import Provider
from fairlead.gateway.providers.fields import AwsKeys, ConnectionFields, EntraApp
from fairlead.gateway.providers.obtained_kinds import OBTAINED, obtained_kind
from fairlead.net.secret_origin import check_secret_origin

# The field that holds the credential, in JSON and in `Credentials`, by `authType`.
_HOLDERS = {
    "apikey": ("apiKey", "api_key"),
    "aws": ("awsKeys", "aws"),
    "service-account": ("serviceAccount", "service_account"),
    # The token of a sign-in is a key to whoever it is shown to.
    "oauth": ("apiKey", "api_key"),
    "entra": ("entraApp", "entra"),
}
# The kinds of credential that a provider takes, by its `auth` in the catalogue; the default is a key.
_NODE = ("apikey", "none")
_TAKEN = {
    "aws-sigv4": ("aws", "apikey"),
    "google-service-account": ("service-account", "apikey"),
    "none": ("none", "apikey"),
}
_NAMES = {
    "api_key": "api_key",
    "aws_keys": "aws",
    "service_account": "service_account",
    "entra_app": "entra",
}


def auth_type_of(fields: ConnectionFields, otherwise: str = "none") -> str:
    """The `authType` that was sent, else the one of the credential that was sent, else `otherwise`."""
    if fields.auth_type is not None:
        return fields.auth_type
    for auth_type, sent in (
        ("apikey", fields.api_key),
        ("aws", fields.aws_keys),
        ("service-account", fields.service_account),
        ("entra", fields.entra_app),
    ):
        if sent:
            return auth_type
    return otherwise


def merge_credentials(before: Credentials, fields: ConnectionFields, auth_type: str) -> Credentials:
    """The credential after a change: a field that was not sent stays, unless the kind of credential
    has changed.
    """
    changed: dict[str, Any] = {}
    kind = obtained_kind(auth_type)
    for name, attribute in _NAMES.items():
        is_sent = name in fields.model_fields_set
        if kind is not None and attribute == kind.holder:
            if is_sent and getattr(fields, name) is not None:
                field = next(each for each, holder in _HOLDERS.values() if holder == attribute)
                raise InvalidRequest(
                    f"{field} must not be sent while authType is `{auth_type}`: the gateway obtains it.",
                    param=field,
                )
        elif is_sent:
            value = getattr(fields, name)
            is_record = isinstance(value, AwsKeys | EntraApp)
            changed[attribute] = value.model_dump() if is_record else value
        elif attribute != _HOLDERS.get(auth_type, ("", ""))[1]:
            changed[attribute] = None
    return replace(before, **changed)


def check_credential(provider: Provider, auth_type: str, credentials: Credentials) -> None:
    """`InvalidRequest` for a kind of credential that the provider does not take, a missing
    credential, or one of another kind beside it.
    """
    taken = _NODE if isinstance(provider, Node) else _taken_by(provider.auth)
    if auth_type == "oauth":
        taken = ("oauth",)
    if auth_type not in taken:
        field = _HOLDERS[taken[0]][0] if taken[0] in _HOLDERS else "authType"
        if auth_type == "none":
            raise InvalidRequest(
                f"{field} is required: {provider.name} refuses calls without it.", param=field
            )
        known = " or ".join(f"`{each}`" for each in taken)
        raise InvalidRequest(f"authType must be {known} at {provider.name}.", param="authType")
    obtained = obtained_kind(auth_type)
    for kind, (field, name) in _HOLDERS.items():
        if obtained is not None and name == obtained.holder:
            continue
        has = getattr(credentials, name) is not None
        if kind == auth_type and not has:
            raise InvalidRequest(
                f"{field} is required while authType is `{auth_type}`.", param=field
            )
        if kind != auth_type and has and name != _HOLDERS.get(auth_type, ("", ""))[1]:
            raise InvalidRequest(
                f"{field} must not be sent while authType is `{auth_type}`.", param=field
            )


def _taken_by(auth: str) -> tuple[str, ...]:
    own = _TAKEN.get(auth, ("apikey",))
    return (*own, *(name for name, kind in OBTAINED.items() if kind.auth == auth))


def refuse_new_sign_in(auth_type: str, before: str | None, *, sends_key: bool) -> None:
    """`InvalidRequest` for a connection that would become a sign-in without one, or be given another's
    token.
    """
    if auth_type == "oauth" and (before != "oauth" or sends_key):
        raise InvalidRequest(
            "authType `oauth` is made by signing in: POST /api/oauth/<provider>/authorize. With an apiKey "
            "send authType `apikey`.",
            param="apiKey" if sends_key else "authType",
        )


def check_credential_kept(
    credentials: Credentials,
    auth_type: str,
    sent: Collection[str],
    before: Iterable[str],
    after: Iterable[str],
) -> None:
    """`InvalidRequest` when a stored credential would be sent to a host that it was not given for."""
    field, name = _HOLDERS.get(auth_type, ("", ""))
    is_kept = name and not any(_NAMES.get(each) == name for each in sent)
    if is_kept and getattr(credentials, name) is not None:
        check_secret_origin(field, before, after)
