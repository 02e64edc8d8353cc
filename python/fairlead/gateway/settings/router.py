"""`/api/settings`: what an operator may change while fairlead runs.

`settingsRevision` grows by one with each change. A body that carries it is refused with 409 when
somebody else has changed the settings since.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field, StrictInt, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from fairlead.errors import Conflict
from fairlead.store.file import Connection
from fairlead.store.meta import count_up, read_meta
from fairlead.store.operator_settings import (
    OperatorSettings,
    read_operator_settings,
    write_operator_settings,
)
from fairlead.store.outbox import Event, emit
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/settings", tags=["settings"])

REVISION = "settings_revision"
_SETTABLE = {field.alias for field in OperatorSettings.model_fields.values()}


class SettingsView(OperatorSettings):
    """Every setting with the value in force."""

    settings_revision: StrictInt


class SettingsChange(OperatorSettings):
    """Some settings, at least one."""

    settings_revision: StrictInt | None = Field(
        None, description="The revision that the caller last saw."
    )

    @model_validator(mode="before")
    @classmethod
    def _has_a_field(cls, body: Any) -> Any:
        if isinstance(body, dict) and not body.keys() - {"settingsRevision"}:
            raise PydanticCustomError(
                "no_valid_fields",
                "No valid fields to update: send at least one of {names}",
                {"names": ", ".join(sorted(name for name in _SETTABLE if name))},
            )
        return body


@router.get("", summary="Every setting with its value")
async def read(services: ServicesDep) -> SettingsView:
    """Values in force and their revision."""
    return await services.state.read(_view)


@router.patch("", summary="Change some settings; those not sent stay")
async def change(body: SettingsChange, services: ServicesDep) -> SettingsView:
    """Stores what was sent over what is in force."""
    return await services.state.commit(lambda con: _store(con, body, keep=True))


@router.put("", summary="Replace the settings; those not sent go back to their defaults")
async def replace(body: SettingsChange, services: ServicesDep) -> SettingsView:
    """Stores what was sent over the defaults."""
    return await services.state.commit(lambda con: _store(con, body, keep=False))


def _store(con: Connection, body: SettingsChange, *, keep: bool) -> SettingsView:
    revision = int(read_meta(con, REVISION) or 0)
    if body.settings_revision is not None and body.settings_revision != revision:
        raise Conflict(
            f"The settings are at revision {revision}: read them again and repeat the change.",
            param="settingsRevision",
        )
    sent = body.model_dump(exclude={"settings_revision"}, exclude_unset=True)
    before = read_operator_settings(con) if keep else OperatorSettings()
    write_operator_settings(con, before.model_copy(update=sent))
    changed = sorted(to_camel(name) for name in sent)
    told = {"settingsRevision": count_up(con, REVISION), "changed": changed}
    emit(con, Event("settings.updated", told))
    return _view(con)


def _view(con: Connection) -> SettingsView:
    return SettingsView.model_construct(
        **dict(read_operator_settings(con)), settings_revision=int(read_meta(con, REVISION) or 0)
    )
