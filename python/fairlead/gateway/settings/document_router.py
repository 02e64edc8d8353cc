"""`/api/settings/export-json` and `import-json`: all settings as one document, for people."""

from __future__ import annotations

from typing import Any, Final, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, SecretStr, ValidationError
from pydantic.alias_generators import to_camel

from fairlead.calls.caller import CallerDep
from fairlead.errors import InvalidRequest
from fairlead.gateway.settings.router import SettingsChange, SettingsView, replace
from fairlead.moment import Time, moment_of, now_ms
from fairlead.settings import PASSWORD_MAX_CHARS
from fairlead.store.operator_settings import (
    SECURITY_SETTINGS,
    OperatorSettings,
    read_operator_settings,
)
from fairlead.store.services import ServicesDep
from fairlead.wire import NamedWire

router = APIRouter(prefix="/api/settings", tags=["settings"])

FORMAT: Final = "fairlead-settings-1"


class SettingsDocument(NamedWire):
    """Every setting with its value; no secret is among them."""

    format: Literal["fairlead-settings-1"] = FORMAT
    exported_at: Time
    settings: OperatorSettings


class SettingsImport(NamedWire):
    """A document as it was exported. Security settings that differ from those in force need
    `currentPassword` beside it.
    """

    format: Literal["fairlead-settings-1"]
    exported_at: str | None = Field(None, max_length=64)
    settings: dict[str, Any]
    current_password: SecretStr | None = Field(None, max_length=PASSWORD_MAX_CHARS)


@router.get("/export-json", summary="The settings as a document")
async def export(services: ServicesDep, response: Response) -> SettingsDocument:
    """Exports the settings in the form that `import-json` accepts."""
    settings = await services.state.read(read_operator_settings)
    response.headers["cache-control"] = "no-store"
    response.headers["content-disposition"] = 'attachment; filename="fairlead-settings.json"'
    return SettingsDocument.model_construct(
        format=FORMAT, exported_at=moment_of(now_ms()), settings=settings
    )


@router.post("/import-json", summary="Replace the settings by such a document")
async def take_in(
    body: SettingsImport, request: Request, services: ServicesDep, caller: CallerDep
) -> SettingsView:
    """All of it or nothing: settings that are not in it go back to their defaults, security settings
    stay.
    """
    inert = {"settingsRevision", "currentPassword", "newPassword"} & body.settings.keys()
    if inert:
        name = min(inert)
        raise InvalidRequest(f"{name} is no setting: remove it.", param=f"settings.{name}")
    now = await services.state.read(read_operator_settings)
    shown = now.model_dump(mode="json", by_alias=True)
    same = {
        name
        for name in map(to_camel, SECURITY_SETTINGS)
        if name in body.settings and body.settings[name] == shown[name]
    }
    sent = {name: value for name, value in body.settings.items() if name not in same}
    if body.current_password is not None:
        sent["currentPassword"] = body.current_password
    try:
        change = SettingsChange.model_validate(sent)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        rule = first["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
        raise InvalidRequest(f"{name}: {rule}.", param=f"settings.{name}") from None
    return await replace(change, request, services, caller)
