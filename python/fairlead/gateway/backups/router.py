"""`/api/db-backups`: copies of the state, for people and the local command line.

A copy holds hashes and sealed secrets; it opens only where the same `secret.key` is. After a restore
control starts again, so that nothing in memory is of the state before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, BackgroundTasks, Query, Request
from pydantic import Field, StrictBool
from starlette.background import BackgroundTask as AfterAnswer

from fairlead.calls.caller import CallerDep
from fairlead.errors import InvalidRequest, NotFound, UnsupportedMediaType
from fairlead.gateway.backups.folder import Backup, Reason, shown_name
from fairlead.gateway.backups.keeper import Keeper, keeper_of
from fairlead.gateway.backups.owner import check_owner
from fairlead.moment import Time, moment_of, now_ms
from fairlead.process.file_answer import FileAnswer
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import NamedWire, Success

router = APIRouter(prefix="/api/db-backups", tags=["backups"])

OCTETS = "application/octet-stream"
T = TypeVar("T")


class BackupView(NamedWire):
    """A kept copy; `size` is in bytes."""

    id: str
    filename: str
    created_at: Time
    size: int
    reason: Reason


class BackupList(NamedWire):
    backups: list[BackupView]


class CreatedBackup(BackupView):
    created: Literal[True] = True


class Restore(NamedWire):
    backup_id: str = Field(min_length=1, max_length=200)


class Restored(NamedWire):
    """The result of a restore. `replacedBackupId` is the backup of the state before."""

    restored: Literal[True] = True
    replaced_backup_id: str
    connection_count: int
    node_count: int
    combo_count: int
    api_key_count: int
    user_count: int


class Imported(NamedWire):
    """The result of an import; `imported` is false for a dry run, which changes nothing."""

    imported: StrictBool
    dry_run: StrictBool
    filename: str
    replaced_backup_id: str | None
    connection_count: int
    node_count: int
    combo_count: int
    api_key_count: int
    user_count: int


@router.get("", summary="List backups, newest first")
async def list_all(services: ServicesDep) -> BackupList:
    """The backups that are kept on the gateway's machine."""
    backups = await keeper_of(services).folder.list()
    return BackupList.model_construct(backups=[_view(backup) for backup in backups])


@router.put("", summary="Make a backup")
async def create(services: ServicesDep) -> CreatedBackup:
    """A consistent copy. `backupKeepCount` and `backupKeepDays` set how many are kept, and for how long."""
    backup = await keeper_of(services).make("manual")
    return CreatedBackup.model_construct(**dict(_view(backup)), created=True)


@router.post("", summary="Restore a backup")
async def restore(body: Restore, services: ServicesDep, after: BackgroundTasks) -> Restored:
    """Replaces all of the state, including users, sessions and keys."""
    keeper = keeper_of(services)
    backup = await _found(keeper, body.backup_id, "backupId")

    async def put_back(part: Path) -> Restored:
        counts = await keeper.inspect(part)
        before = await keeper.restore(part)
        return Restored.model_construct(
            replaced_backup_id=before.id, restored=True, **_snake(counts)
        )

    restored = await _with(keeper, await keeper.borrow(backup), put_back)
    _start_anew(services, after)
    return restored


@router.delete("/{backup_id}", summary="Delete a backup")
async def delete(backup_id: str, services: ServicesDep) -> Success:
    """Deletes one kept copy."""
    keeper = keeper_of(services)
    await keeper.delete(await _found(keeper, backup_id, "id"))
    return Success()


@router.post("/import", summary="Replace the state by a database file")
async def import_file(
    request: Request,
    services: ServicesDep,
    caller: CallerDep,
    after: BackgroundTasks,
    dry_run: Annotated[Literal["true", "false"], Query(alias="dryRun")] = "false",
) -> Imported:
    """The file as it was exported, as `application/octet-stream`. A damaged one changes nothing. Only the owner
    imports; an admin may ask for a dry run.
    """
    if request.headers.get("content-type", "").strip().lower() != OCTETS:
        raise UnsupportedMediaType(f"Send the database file with `Content-Type: {OCTETS}`.")
    content = await request.body()
    if not content:
        raise InvalidRequest("The body is empty: send the database file.")
    is_dry = dry_run == "true"
    if not is_dry:
        await check_owner(services, caller)
    keeper = keeper_of(services)

    async def take_in(part: Path) -> Imported:
        counts = await keeper.inspect(part)
        before = None if is_dry else await keeper.restore(part)
        return Imported.model_construct(
            imported=not is_dry,
            dry_run=is_dry,
            filename=services.state.database.name,
            replaced_backup_id=before.id if before else None,
            **_snake(counts),
        )

    imported = await _with(keeper, await keeper.receive(content), take_in)
    if not is_dry:
        _start_anew(services, after)
    return imported


@router.get("/export", response_class=FileAnswer, summary="The state as a database file")
async def export(services: ServicesDep) -> FileAnswer:
    """A copy of this moment."""
    keeper = keeper_of(services)
    part = await keeper.copy(services.state.database)
    return _download(keeper, part, shown_name(now_ms(), ".duckdb"), OCTETS)


@router.get(
    "/exportAll", response_class=FileAnswer, summary="State and usage as a compressed archive"
)
async def export_all(services: ServicesDep) -> FileAnswer:
    """`state.duckdb` and `usage.duckdb`; the key of the sealed secrets is not in it."""
    keeper = keeper_of(services)
    part = await keeper.archive()
    return _download(keeper, part, shown_name(now_ms(), ".tar.gz"), "application/gzip")


async def _found(keeper: Keeper, backup_id: str, param: str) -> Backup:
    backup = await keeper.folder.find(backup_id)
    if backup is None:
        raise NotFound("There is no backup with this id.", param=param)
    return backup


async def _with(keeper: Keeper, part: Path, work: Callable[[Path], Awaitable[T]]) -> T:
    try:
        return await work(part)
    finally:
        keeper.folder.discard(part)


def _download(keeper: Keeper, part: Path, name: str, kind: str) -> FileAnswer:
    return FileAnswer(
        part,
        media_type=kind,
        filename=name,
        headers={"cache-control": "no-store", "x-content-type-options": "nosniff"},
        background=AfterAnswer(keeper.folder.discard, part),
    )


def _start_anew(services: Services, after: BackgroundTasks) -> None:
    on_fatal = services.state.database.on_fatal
    if on_fatal is not None:
        after.add_task(_call, on_fatal)


async def _call(start_anew: Callable[[], None]) -> None:
    start_anew()


def _snake(counts: dict[str, int]) -> dict[str, Any]:
    names = {"connectionCount": "connection_count", "nodeCount": "node_count"}
    names |= {
        "comboCount": "combo_count",
        "apiKeyCount": "api_key_count",
        "userCount": "user_count",
    }
    return {names[name]: count for name, count in counts.items()}


def _view(backup: Backup) -> BackupView:
    return BackupView.model_construct(
        id=backup.id,
        filename=backup.file,
        created_at=moment_of(backup.created_at_ms),
        size=backup.size,
        reason=backup.reason,
    )
