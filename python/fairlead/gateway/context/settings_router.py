"""The settings of the context, a route for each group; all are among `/api/settings`, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import orjson
from fastapi import APIRouter, Request
from pydantic import BeforeValidator, Field, StrictInt, StrictStr, ValidationError

from fairlead import _core
from fairlead.calls.caller import CallerDep
from fairlead.errors import Conflict, InvalidRequest
from fairlead.gateway.context.table import own_filters, replace_own_filters
from fairlead.gateway.settings.router import SettingsChange, SettingsView, change
from fairlead.store.file import Connection
from fairlead.store.operator_settings import (
    CompressionLevel,
    OperatorSettings,
    read_operator_settings,
)
from fairlead.store.services import ServicesDep
from fairlead.text.invalid import invalid_request
from fairlead.wire import ChangeWire, Wire

router = APIRouter(tags=["context"])

OWN_FILTERS_MAX = 50
OWN_FILTER_MAX_CHARS = 65_536


class CompressionSettings(Wire):
    """Which pipeline is taken where a caller names none."""

    mode: str
    automatic_tokens: int
    automatic_mode: str


class CompressionSettingsChange(ChangeWire):
    """Fields that are not sent stay."""

    mode: StrictStr | None = None
    automatic_tokens: StrictInt | None = None
    automatic_mode: StrictStr | None = None


class ThinkingBudget(Wire):
    """Get how requests with reasoning settings are rewritten."""

    mode: Literal["passthrough", "auto-strip", "custom", "adaptive"]
    budget_tokens: int


def _mode(value: object) -> object:
    return "auto-strip" if value == "auto" else value


class ThinkingBudgetChange(ChangeWire):
    """Fields that are not sent stay. `auto` is another name of `auto-strip`."""

    other_names: ClassVar[Mapping[str, str]] = {"customBudget": "budgetTokens"}

    mode: Annotated[StrictStr | None, BeforeValidator(_mode)] = None
    budget_tokens: StrictInt | None = None


class SystemPrompt(Wire):
    """Text before and after what callers tell models about their part."""

    prefix: str
    suffix: str


class SystemPromptChange(ChangeWire):
    """Fields that are not sent stay; an empty text adds nothing."""

    other_names: ClassVar[Mapping[str, str]] = {"prefixPrompt": "prefix", "suffixPrompt": "suffix"}

    prefix: StrictStr | None = None
    suffix: StrictStr | None = None


class ContextWindow(Wire):
    """The policy for a request that is longer than its model's window."""

    policy: Literal["pass", "refuse", "trim"]


class ContextWindowChange(Wire):
    policy: StrictStr


class CavemanConfig(Wire):
    """Languages in which empty phrases go; none means all."""

    languages: list[str]


class CavemanConfigChange(Wire):
    languages: list[StrictStr]


class OwnFilters(Wire):
    """Filters as TOML. The SHA-256 (hex) says that somebody looked at this very text and trusts it."""

    toml: StrictStr = Field(min_length=1, max_length=OWN_FILTER_MAX_CHARS)
    sha256: StrictStr = Field(pattern="^[0-9a-f]{64}$")


class RtkConfig(Wire):
    """How strongly outputs of commands are filtered, and your filters, which are tried first."""

    level: Literal["by-mode", CompressionLevel]
    raw_output_bytes: int = Field(
        description="Maximum size of stored unshortened outputs; 0 stores none."
    )
    raw_output_hours: int
    filters: list[OwnFilters]


class RtkConfigChange(ChangeWire):
    """Fields that are not sent stay."""

    level: StrictStr | None = None
    raw_output_bytes: StrictInt | None = None
    raw_output_hours: StrictInt | None = None
    filters: list[OwnFilters] | None = Field(None, max_length=OWN_FILTERS_MAX)


@router.get("/api/settings/compression", summary="Show the pipeline that shortens conversations")
async def read_compression(services: ServicesDep) -> CompressionSettings:
    """The pipelines for callers who name none."""
    return _compression(await services.state.read(read_operator_settings))


@router.put(
    "/api/settings/compression", summary="Choose the pipeline; other fields keep their value"
)
async def change_compression(
    body: CompressionSettingsChange, request: Request, services: ServicesDep, caller: CallerDep
) -> CompressionSettings:
    """In force when this returns."""
    return _compression(await _change("compression", body, request, services, caller))


@router.get(
    "/api/settings/thinking-budget", summary="How requests that say how to think are rewritten"
)
async def read_thinking(services: ServicesDep) -> ThinkingBudget:
    """The mode, and the tokens of `custom` and `adaptive`."""
    return _thinking(await services.state.read(read_operator_settings))


@router.put(
    "/api/settings/thinking-budget",
    summary="Set how thinking is rewritten; other fields keep their value",
)
async def change_thinking(
    body: ThinkingBudgetChange, request: Request, services: ServicesDep, caller: CallerDep
) -> ThinkingBudget:
    """In force when this returns."""
    fields = {"mode": "thinkingBudgetMode", "budgetTokens": "thinkingBudgetTokens"}
    return _thinking(await _change_named(fields, body, request, services, caller))


@router.get("/api/settings/system-prompt", summary="The text around callers' system prompts")
async def read_system_prompt(services: ServicesDep) -> SystemPrompt:
    """Prefix and suffix; empty where nothing is added."""
    return _prompt(await services.state.read(read_operator_settings))


@router.put("/api/settings/system-prompt", summary="Set the text around callers' system prompts")
async def change_system_prompt(
    body: SystemPromptChange, request: Request, services: ServicesDep, caller: CallerDep
) -> SystemPrompt:
    """In force when this returns. Providers write prompts into their caches once more."""
    return _prompt(await _change("systemPrompt", body, request, services, caller))


@router.get("/api/settings/context-window", summary="How requests that are too long are handled")
async def read_window(services: ServicesDep) -> ContextWindow:
    """The policy in force."""
    return _window(await services.state.read(read_operator_settings))


@router.put(
    "/api/settings/context-window", summary="Set how requests that are too long are handled"
)
async def change_window(
    body: ContextWindowChange, request: Request, services: ServicesDep, caller: CallerDep
) -> ContextWindow:
    """In force when this returns."""
    return _window(await _change("contextWindow", body, request, services, caller))


@router.get("/api/context/caveman/config", summary="Languages in which empty phrases are removed")
async def read_caveman(services: ServicesDep) -> CavemanConfig:
    """The languages; none means all."""
    return _caveman(await services.state.read(read_operator_settings))


@router.put(
    "/api/context/caveman/config", summary="Set the languages in which empty phrases are removed"
)
async def change_caveman(
    body: CavemanConfigChange, request: Request, services: ServicesDep, caller: CallerDep
) -> CavemanConfig:
    """In force when this returns."""
    return _caveman(await _change("compression", body, request, services, caller))


@router.get(
    "/api/context/rtk/config", summary="The level of filters for outputs, and your own filters"
)
async def read_rtk(services: ServicesDep) -> RtkConfig:
    """Filters in the order in which they are tried."""
    return await services.state.read(_rtk)


@router.put("/api/context/rtk/config", summary="Set the level and your own filters")
async def change_rtk(
    body: RtkConfigChange, request: Request, services: ServicesDep, caller: CallerDep
) -> RtkConfig:
    """In force when this returns."""
    filters = body.filters
    if filters is not None:
        _check_filters(filters)
    elif "filters" in body.model_fields_set:
        raise InvalidRequest("filters must be a list; [] has none.", param="filters")
    if body.model_fields_set - {"filters"}:
        await _change_named(_RTK_SETTINGS, body, request, services, caller)
    if filters is not None:
        stored = [(each.sha256, each.toml) for each in filters]
        await services.state.commit(lambda con: replace_own_filters(con, stored))
    return await services.state.read(_rtk)


_RTK_SETTINGS = {
    "level": "compressionRtkLevel",
    "rawOutputBytes": "compressionRawOutputBytes",
    "rawOutputHours": "compressionRawOutputHours",
}


def _check_filters(filters: list[OwnFilters]) -> None:
    if len({each.sha256 for each in filters}) < len(filters):
        raise Conflict("filters has one text twice: send each once.", param="filters")
    for at, each in enumerate(filters):
        param = f"filters[{at}]"
        try:
            read = orjson.loads(_core.read_output_filters(each.toml))
        except ValueError as error:
            raise InvalidRequest(f"{param}.toml cannot be read: {error}.", param=param) from None
        if read["sha256"] != each.sha256:
            raise InvalidRequest(
                f"{param}.sha256 is not of this text, which has {read['sha256']}: look at the text, "
                "and send that if you trust it.",
                param=param,
            )


async def _change(
    prefix: str, body: Wire, request: Request, services: ServicesDep, caller: CallerDep
) -> SettingsView:
    """Changes settings whose names are the body's behind a prefix."""
    names = [str(field.alias) for field in type(body).model_fields.values()]
    fields = {name: prefix + name[0].upper() + name[1:] for name in names}
    return await _change_named(fields, body, request, services, caller)


async def _change_named(
    fields: dict[str, str],
    body: Wire,
    request: Request,
    services: ServicesDep,
    caller: CallerDep,
) -> SettingsView:
    """Changes settings by the names of a body's members; rules are those of `/api/settings`."""
    sent: dict[str, Any] = body.model_dump(by_alias=True, exclude_unset=True, mode="json")
    wanted = {setting: sent[name] for name, setting in fields.items() if name in sent}
    named = {setting: name for name, setting in fields.items()}
    try:
        checked = SettingsChange.model_validate(wanted)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = (named.get(str(first["loc"][0]), first["loc"][0]), *first["loc"][1:])
        raise invalid_request([{**first, "loc": place}]) from None
    try:
        return await change(checked, request, services, caller)
    except InvalidRequest as error:
        # The name of the setting in errors; the caller sent another name.
        if (name := named.get(str(error.param))) is None:
            raise
        raise InvalidRequest(error.message.replace(str(error.param), name), param=name) from None


def _compression(settings: OperatorSettings) -> CompressionSettings:
    return CompressionSettings.model_construct(
        mode=settings.compression_mode,
        automatic_tokens=settings.compression_automatic_tokens,
        automatic_mode=settings.compression_automatic_mode,
    )


def _thinking(settings: OperatorSettings) -> ThinkingBudget:
    return ThinkingBudget.model_construct(
        mode=settings.thinking_budget_mode, budget_tokens=settings.thinking_budget_tokens
    )


def _prompt(settings: OperatorSettings) -> SystemPrompt:
    return SystemPrompt.model_construct(
        prefix=settings.system_prompt_prefix, suffix=settings.system_prompt_suffix
    )


def _window(settings: OperatorSettings) -> ContextWindow:
    return ContextWindow.model_construct(policy=settings.context_window_policy)


def _caveman(settings: OperatorSettings) -> CavemanConfig:
    return CavemanConfig.model_construct(languages=settings.compression_languages)


def _rtk(con: Connection) -> RtkConfig:
    filters = [
        OwnFilters.model_construct(toml=toml, sha256=sha256) for sha256, toml in own_filters(con)
    ]
    settings = read_operator_settings(con)
    return RtkConfig.model_construct(
        level=settings.compression_rtk_level,
        raw_output_bytes=settings.compression_raw_output_bytes,
        raw_output_hours=settings.compression_raw_output_hours,
        filters=filters,
    )
