"""`/api/settings`: what an operator may change while fairlead runs.

`settingsRevision` grows by one with each change. A body that carries it is refused with 409 when
somebody else has changed the settings since.

Security settings are changed by an operator with `currentPassword` beside them, and by no key and
no access token of any scope; `newPassword` is the caller's own. A setting that the environment rules
is shown as it says, and cannot be changed here.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field, SecretStr, StrictBool, StrictInt, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from fairlead.calls.caller import Caller, CallerDep
from fairlead.errors import Conflict, Internal, InvalidRequest
from fairlead.gateway.cache.vectors import check_vectors
from fairlead.gateway.context.rules import check_context
from fairlead.gateway.settings.sign_on import check_sign_on, without_ruled
from fairlead.process.placeholder_password import is_placeholder
from fairlead.records.provider_names import provider_id
from fairlead.settings import PASSWORD_MAX_CHARS
from fairlead.store.database import Transaction
from fairlead.store.file import Connection
from fairlead.store.meta import count_up, read_meta
from fairlead.store.operator_settings import (
    PEOPLES_SETTINGS,
    SECURITY_SETTINGS,
    OperatorSettings,
    read_operator_settings,
    write_operator_settings,
)
from fairlead.store.outbox import Event, emit
from fairlead.store.services import Operator, Services, ServicesDep
from fairlead.store.sign_on import in_force, seal_secret
from fairlead.wire import Wire

router = APIRouter(prefix="/api/settings", tags=["settings"])

REVISION = "settings_revision"
NEW_PASSWORD_MIN_CHARS = 8
_SETTABLE = {field.alias for field in OperatorSettings.model_fields.values()}


_ALL = frozenset(OperatorSettings.model_fields)
# Fields of a body that are no settings.
_BESIDE = frozenset({"settingsRevision", "currentPassword"})


class SettingsView(OperatorSettings):
    """Every setting with the value in force."""

    settings_revision: StrictInt


class SettingsChange(OperatorSettings):
    """Some settings, at least one."""

    settings_revision: StrictInt | None = Field(
        None, description="The revision that the caller last saw."
    )
    current_password: SecretStr | None = Field(
        None,
        max_length=PASSWORD_MAX_CHARS,
        description="The caller's password; security settings and `newPassword` need it.",
    )
    new_password: SecretStr | None = Field(
        None,
        min_length=NEW_PASSWORD_MIN_CHARS,
        max_length=PASSWORD_MAX_CHARS,
        description="The caller's password from now on; all their other sessions end.",
    )

    @model_validator(mode="before")
    @classmethod
    def _has_a_field(cls, body: Any) -> Any:
        if isinstance(body, dict) and not body.keys() - _BESIDE:
            raise PydanticCustomError(
                "no_valid_fields",
                "No valid fields to update: send at least one of {names}",
                {"names": ", ".join(sorted(name for name in _SETTABLE if name))},
            )
        return body


@router.get("", summary="Every setting with its value")
async def read(services: ServicesDep) -> SettingsView:
    """Values in force and their revision."""
    return await services.state.read(lambda con: _view(con, services))


@router.patch("", summary="Change some settings; others keep their value")
async def change(
    body: SettingsChange, request: Request, services: ServicesDep, caller: CallerDep
) -> SettingsView:
    """Stores what was sent over what is in force."""
    return await _change(body, request, services, caller, keep=True)


@router.put("", summary="Replace the settings; those not sent go back to their defaults")
async def replace(
    body: SettingsChange, request: Request, services: ServicesDep, caller: CallerDep
) -> SettingsView:
    """Stores what was sent over the defaults. Security settings that are not sent stay."""
    return await _change(body, request, services, caller, keep=False)


class RequireLogin(Wire):
    require_login: StrictBool


class RequireLoginChange(RequireLogin):
    current_password: SecretStr | None = Field(None, max_length=PASSWORD_MAX_CHARS)


@router.get("/require-login", summary="Show whether management requires a sign-in")
async def read_require_login(services: ServicesDep) -> RequireLogin:
    """The setting `requireLogin` alone."""
    settings = await services.state.read(read_operator_settings)
    return RequireLogin.model_construct(require_login=settings.require_login)


@router.put("/require-login", summary="Turn the sign-in for management on or off")
async def change_require_login(
    body: RequireLoginChange, request: Request, services: ServicesDep, caller: CallerDep
) -> RequireLogin:
    """The setting `requireLogin` alone; needs `currentPassword`."""
    change = SettingsChange.model_validate(
        {"requireLogin": body.require_login, "currentPassword": body.current_password}
    )
    view = await _change(change, request, services, caller, keep=True)
    return RequireLogin.model_construct(require_login=view.require_login)


async def _change(
    body: SettingsChange, request: Request, services: Services, caller: Caller, *, keep: bool
) -> SettingsView:
    check_vectors(body)
    base = _ALL if keep else _kept_by(caller)
    set_password = await _confirmed(body, request, services, caller)

    def store(con: Connection) -> SettingsView:
        if set_password is not None:
            set_password(con)
        return _store(con, services, body, base)

    return await services.state.commit(store)


async def _confirmed(
    body: SettingsChange, request: Request, services: Services, caller: Caller
) -> Transaction[None] | None:
    """Checks that the caller may change security settings. Returns the function that stores the new
    password, if one was sent.
    """
    sent = body.model_fields_set
    if not sent & (SECURITY_SETTINGS | {"new_password"}):
        return None
    operator = _operator(services)
    await operator.confirm(request, caller, body.current_password)
    if "require_login" in sent and not body.require_login and not _is_private(services):
        raise Conflict(
            "requireLogin cannot be false while fairlead listens on an address that others reach: "
            "bind 127.0.0.1 first.",
            param="requireLogin",
        )
    if body.new_password is None:
        return None
    if is_placeholder(body.new_password.get_secret_value()):
        raise InvalidRequest(
            "newPassword is a well-known example: choose another one.",
            param="newPassword",
        )
    return await operator.new_password(request, caller, body.new_password)


def _kept_by(caller: Caller) -> frozenset[str]:
    """The settings that stay where the others are replaced. A program resets none that it may not set."""
    return SECURITY_SETTINGS if caller.principal.kind not in ("key", "token") else PEOPLES_SETTINGS


def _operator(services: Services) -> Operator:
    if services.operator is None:
        raise Internal("The check of operators is not available.")
    return services.operator


def _is_private(services: Services) -> bool:
    return services.config.is_loopback or services.config.allow_unauthenticated_bind


def _store(
    con: Connection, services: Services, body: SettingsChange, staying: frozenset[str]
) -> SettingsView:
    """Stores what was sent; of the other settings those of the names in `staying` stay."""
    revision = int(read_meta(con, REVISION) or 0)
    if body.settings_revision is not None and body.settings_revision != revision:
        raise Conflict(
            f"The settings are at revision {revision}: read them again and repeat the change.",
            param="settingsRevision",
        )
    no_settings = {"settings_revision", "current_password", "new_password"}
    sent = body.model_dump(exclude=no_settings, exclude_unset=True)
    before = read_operator_settings(con)
    sent = without_ruled(sent, before, services.config)
    check_sign_on(before, sent, services.config)
    _check_providers(con, before, sent)
    if isinstance(secret := sent.get("oidc_client_secret"), SecretStr):
        sent["oidc_client_secret"] = seal_secret(services.state.sealer, secret)
    base = OperatorSettings().model_copy(update={name: getattr(before, name) for name in staying})
    after = base.model_copy(update=sent)
    check_context(con, after, frozenset(sent))
    write_operator_settings(con, after)
    changed = sorted(to_camel(name) for name in sent)
    event_data = {"settingsRevision": count_up(con, REVISION), "changed": changed}
    emit(con, Event("settings.updated", event_data))
    return _view(con, services)


def _check_providers(con: Connection, before: OperatorSettings, sent: dict[str, Any]) -> None:
    """Puts the ids of providers in the place of prefixes; `InvalidRequest` for a new strategy of a provider that is not
    there.
    """
    if "account_strategies" not in sent:
        return
    sent["account_strategies"] = {
        name
        if name in before.account_strategies
        else provider_id(con, name, "accountStrategies"): strategy
        for name, strategy in sent["account_strategies"].items()
    }


def _view(con: Connection, services: Services) -> SettingsView:
    return SettingsView.model_construct(
        **dict(in_force(read_operator_settings(con), services.config)),
        settings_revision=int(read_meta(con, REVISION) or 0),
    )
