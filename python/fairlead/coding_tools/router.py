"""`/api/cli-tools`: coding tools, what is installed of them, and their configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query
from pydantic import Field, SecretStr, StrictBool

from fairlead.coding_tools.backups import BackupStore
from fairlead.coding_tools.catalogue import catalogue
from fairlead.coding_tools.configure import Applied, ConfigurationFailed, Configurator, FilePlan
from fairlead.coding_tools.detection import Detector
from fairlead.coding_tools.entry import ToolEntry, ToolId
from fairlead.coding_tools.environment import container_marks
from fairlead.coding_tools.filling import MODEL_NAME, GatewayTarget
from fairlead.coding_tools.guard import EPHEMERAL, host_command, is_ephemeral
from fairlead.coding_tools.paste_block import paste_block
from fairlead.coding_tools.views import (
    AppliedConfig,
    Commands,
    FileView,
    RestoredBackup,
    ToolBackup,
    ToolBackupList,
    ToolList,
    ToolStatus,
    ToolView,
)
from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.fields import Spelled, Text
from fairlead.gateway.models.catalogue_router import CatalogueFilter, ModelEntry, catalogue_page
from fairlead.net.web_address import service_address
from fairlead.settings import ControlConfig
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/cli-tools", tags=["coding tools"])

MOST_MODELS = 500
T = TypeVar("T")
NO_KEY = "not-needed"
"""The key that a tool sends if it requires one and the gateway does not."""

ToolName = Annotated[ToolId, Query()]
Wait = Annotated[
    bool,
    Query(
        description="Whether to wait until commands have reported their version. If not, the answer "
        "has what is known, and `reason` says that a command has not answered yet."
    ),
]
ModelName = Annotated[
    Text, Spelled(MODEL_NAME.pattern, "must be without blanks, quotes, `%`, `$` and backslashes")
]


class EphemeralTarget(InvalidRequest):
    """A configuration that would be gone with the container."""

    status = 422


class Application(Wire):
    """`apiKey` is what the tool will send; `baseUrl` is the gateway's own address if left out. `migration` takes out
    what an older way of configuring the tool left behind. With `dryRun` nothing is written. With `elsewhere` nothing is
    read or written either: the answer has the commands that do it on another machine.
    """

    tool: ToolId
    model: ModelName | None = None
    api_key: Annotated[SecretStr, Field(min_length=1, max_length=500)] | None = None
    base_url: Annotated[Text, Field(min_length=1, max_length=2_000)] | None = None
    dry_run: StrictBool = False
    elsewhere: StrictBool = False
    migration: StrictBool = False


class BackupRequest(Wire):
    """Empty to back up every tool's files; a tool and one of its backups to restore that."""

    tool: ToolId | None = None
    backup_id: Annotated[Text, Field(min_length=1, max_length=50)] | None = None


@router.get("", summary="The coding tools that can be configured")
async def list_all(services: ServicesDep) -> ToolList:
    """With the models that may be written into their files."""
    shown = [ToolView.of(tool) for tool in catalogue().values() if tool.is_displayed]
    models = await _models(services)
    return ToolList.model_construct(
        tools=shown, total=len(shown), models=models, base_url=_own_url(services.config)
    )


@router.get("/all-statuses", summary="Which tools are installed and configured")
async def all_statuses(services: ServicesDep, *, wait: Wait = True) -> dict[str, ToolStatus]:
    """By the tool's id. Their commands are asked side by side, each for at most five seconds."""
    tools = [tool for tool in catalogue().values() if tool.is_displayed]
    found = await asyncio.gather(*(_status(services, tool, waits=wait) for tool in tools))
    return {tool.id: status for tool, status in zip(tools, found, strict=True)}


@router.get("/status", summary="Whether one tool is installed and configured")
async def status(services: ServicesDep, tool: ToolName, *, wait: Wait = True) -> ToolStatus:
    return await _status(services, _displayed(tool), waits=wait)


@router.post("/apply", summary="Write a tool's configuration, or show what would be written")
async def apply(wanted: Application, services: ServicesDep) -> AppliedConfig:
    """The preview shows secrets as `***`. A backup is made before anything is written."""
    tool, config = _displayed(wanted.tool), services.config
    target = await _target(services, tool, wanted)
    if wanted.elsewhere:
        return _elsewhere_view(tool, target)
    configurator = _configurator(services)
    if not tool.files:
        raise InvalidRequest(
            f"{tool.name} has no file to write: {' '.join(tool.steps) or 'see its documentation.'}",
            param="tool",
        )

    def write() -> Applied:
        if wanted.dry_run:
            return Applied(configurator.plan(tool, target, migration=wanted.migration), None)
        is_allowed = config.gateway_allow_container_config_write
        if not is_allowed and is_ephemeral(tool, config.cli_config_home, container_marks()):
            command = host_command(tool, target.url)
            raise EphemeralTarget(
                EPHEMERAL,
                param="tool",
                extra={
                    "containerEphemeralTarget": True,
                    **({"hostSetupCommand": command} if command else {}),
                },
            )
        return configurator.apply(tool, target, migration=wanted.migration)

    applied = await _done(write)
    return _applied_view(applied, wanted, configurator)


@router.get("/backups", summary="Backups of tools' configuration, newest first")
async def backups(services: ServicesDep, tool: ToolId | None = None) -> ToolBackupList:
    found = await asyncio.to_thread(_configurator(services).store.list_all, tool)
    return ToolBackupList.model_construct(
        backups=[ToolBackup.of(each) for each in found], total=len(found)
    )


@router.post("/backups", summary="Back up every tool's configuration, or restore one backup")
async def back_up_or_restore(wanted: BackupRequest, services: ServicesDep) -> RestoredBackup:
    """Restores a backup. The present files are backed up before they are replaced."""
    configurator = _configurator(services)
    if wanted.tool is None and wanted.backup_id is None:
        tools = [tool for tool in catalogue().values() if tool.is_displayed and tool.files]
        made = await _done(lambda: [configurator.back_up(tool, "manual") for tool in tools])
        return RestoredBackup.model_construct(
            backups=[ToolBackup.of(each) for each in made], restored=None, paths=[]
        )
    if wanted.tool is None or wanted.backup_id is None:
        missing = "tool" if wanted.tool is None else "backupId"
        raise InvalidRequest(
            f"{missing} is required together with the other: send both, or none.", param=missing
        )
    tool, backup_id = _displayed(wanted.tool), wanted.backup_id
    backup = configurator.store.find(tool.id, backup_id)
    if backup is None:
        raise NotFound("The tool has no backup with this id.", param="backupId")
    safety, paths = await _done(lambda: configurator.restore(tool, backup))
    return RestoredBackup.model_construct(
        backups=[ToolBackup.of(safety)], restored=backup.id, paths=[str(path) for path in paths]
    )


async def _done(work: Callable[[], T]) -> T:
    """The result of work with files, beside the event loop; its failures as answers."""
    try:
        return await asyncio.to_thread(work)
    except ConfigurationFailed as error:
        raise Conflict(str(error)) from None


def _displayed(name: str) -> ToolEntry:
    tool = catalogue().get(name)
    if tool is None or not tool.is_displayed:
        raise NotFound("There is no coding tool with this id that can be configured.", param="tool")
    return tool


async def _status(services: Services, tool: ToolEntry, *, waits: bool) -> ToolStatus:
    def make() -> Detector:
        config = services.config
        store = BackupStore(services.data_dir)
        return Detector(config.cli_config_home, store, [_own_url(config)])

    detector = services.singleton(Detector, make)
    return ToolStatus.of(tool, *await detector.find(tool, waits=waits))


def _configurator(services: Services) -> Configurator:
    return Configurator(services.config.cli_config_home, BackupStore(services.data_dir))


def _own_url(config: ControlConfig) -> str:
    """The gateway's address for tools on this machine."""
    if config.service_public_base_url is not None:
        return config.service_public_base_url.rstrip("/")
    host = "127.0.0.1" if config.host in ("0.0.0.0", "::") else config.host  # noqa: S104
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if config.tls_certificate else 'http'}://{host}:{config.port}"


async def _models(services: Services) -> list[str]:
    """Names of models that a connection serves and that a coding tool can use."""
    wanted = CatalogueFilter(connected=True, kind="chat")
    page = await services.state.read(lambda con: catalogue_page(con, wanted))
    names = [
        model.id
        for entry in page.entries
        for model in entry.models.get("chat", [])
        if not model.is_hidden and MODEL_NAME.fullmatch(model.id) and _can_code(model)
    ]
    return names[:MOST_MODELS]


def _can_code(model: ModelEntry) -> bool:
    """Whether a coding tool can work with it: it calls tools and answers in text, as far as that is known."""
    known = model.capabilities
    return not known or ("tools" in known and "audio_output" not in known)


async def _target(services: Services, tool: ToolEntry, wanted: Application) -> GatewayTarget:
    models = await _models(services)
    model = wanted.model or (models[0] if models and tool.models != "one" else None)
    if model is None:
        raise InvalidRequest(
            f"model is required for {tool.name}: name one of `GET /v1/models`.", param="model"
        )
    if wanted.api_key is None and services.config.require_api_key:
        raise InvalidRequest("apiKey is required: this gateway requires keys.", param="apiKey")
    key = wanted.api_key.get_secret_value() if wanted.api_key else NO_KEY
    try:
        url = service_address(wanted.base_url) if wanted.base_url else _own_url(services.config)
    except ValueError as error:
        raise InvalidRequest(f"baseUrl {error}.", param="baseUrl") from None
    names = tuple(dict.fromkeys([model, *models]))
    return GatewayTarget(url.rstrip("/").removesuffix("/v1"), key, model, names)


def _elsewhere_view(tool: ToolEntry, target: GatewayTarget) -> AppliedConfig:
    block = paste_block(tool, target)
    return AppliedConfig.model_construct(
        success=True,
        dry_run=True,
        config_path="",
        content="",
        backup_id=None,
        backup_path=None,
        files=[],
        commands=None
        if block is None
        else Commands(shell=block.shell, powershell=block.powershell),
    )


def _applied_view(
    applied: Applied, wanted: Application, configurator: Configurator
) -> AppliedConfig:
    first: FilePlan = applied.files[0]
    backup = applied.backup
    place = None if backup is None else str(configurator.store.place_of(backup))
    return AppliedConfig.model_construct(
        success=True,
        dry_run=wanted.dry_run,
        config_path=str(first.path),
        content=first.preview,
        backup_id=None if backup is None else backup.id,
        backup_path=place,
        files=[
            FileView.model_construct(
                path=str(plan.path),
                content=plan.preview,
                changed=plan.is_changed,
                old_members=plan.old_members,
            )
            for plan in applied.files
        ],
    )
