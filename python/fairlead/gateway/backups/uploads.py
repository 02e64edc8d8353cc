"""Uploads of exports, which may be larger than one request: parts are added one after the other, and the whole
file is checked and restored separately.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import structlog

from fairlead.errors import Conflict, FairleadError, InvalidRequest, NotFound, TooLarge
from fairlead.gateway.backups.archive import is_archive
from fairlead.gateway.backups.keeper import Keeper, keeper_of
from fairlead.gateway.backups.unpack import unpack_apart
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.owner_bytes import MIB, check_disk
from fairlead.store.pending_restore import RestoreNote, last_restore, restore_folder
from fairlead.store.services import Services

Work = Literal["receiving", "received", "checking", "checked", "restoring", "restored", "refused"]

UPLOADS_MAX: Final = 4
PART_MAX_BYTES: Final = 32 * MIB
# Databases are read to their end.
CHECK_DEADLINE_S: Final = 1800.0
# Uploads without new parts.
KEPT_S: Final = 24 * 3600.0
_NAME: Final = re.compile(r"([0-9a-f]{24})-([0-9]{1,15})\.upload")
_ID: Final = re.compile(r"[0-9a-f]{24}")

log = structlog.get_logger("fairlead.gateway")


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload; sizes are in bytes."""

    id: str
    path: Path
    size: int
    received: int


@dataclass(slots=True)
class Progress:
    """The state of the last check or restore. `counts` are the rows that the export has."""

    state: Work
    counts: dict[str, int] | None = None
    replaced_backup_id: str | None = None
    error: str | None = None


@dataclass(slots=True)
class Uploads:
    """The uploads of one data directory, one change at a time."""

    services: Services
    keeper: Keeper
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    _progress: dict[str, Progress] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def begin(self, size: int) -> Upload:
        """Begins an upload of so many bytes."""
        settings = await self.services.state.read(read_operator_settings)
        if size > settings.backup_upload_mb * MIB:
            raise TooLarge(
                f"size: the export is larger than {settings.backup_upload_mb} MiB; raise the setting backupUploadMb.",
                param="size",
            )
        async with self.busy:
            await asyncio.to_thread(self._forget_old)
            if len(await asyncio.to_thread(self._list)) >= UPLOADS_MAX:
                raise Conflict(
                    f"{UPLOADS_MAX} uploads are in progress: finish or delete one of them."
                )
            await asyncio.to_thread(check_disk, self.services.data_dir, size)
            return await asyncio.to_thread(self._begin, size)

    async def find(self, upload_id: str) -> Upload:
        """The upload with this id. `NotFound`."""
        listed = await asyncio.to_thread(self._list)
        found = next((each for each in listed if each.id == upload_id), None)
        if found is None:
            raise NotFound("There is no upload with this id.", param="id")
        return found

    async def add(self, upload_id: str, offset: int, part: bytes) -> Upload:
        """Adds the part that begins at `offset`. `Conflict` where another one is expected."""
        async with self.busy:
            upload = await self.find(upload_id)
            self._check_idle(upload.id)
            if offset != upload.received:
                raise Conflict(
                    f"offset: the next part begins at {upload.received}.", param="offset"
                )
            if upload.received + len(part) > upload.size:
                raise InvalidRequest(
                    f"The upload is of {upload.size} bytes, and this would be more."
                )
            await asyncio.to_thread(check_disk, self.services.data_dir, len(part))
            await asyncio.to_thread(_append, upload.path, part)
        return await self.find(upload_id)

    async def delete(self, upload_id: str) -> None:
        """Forgets an upload."""
        async with self.busy:
            upload = await self.find(upload_id)
            self._check_idle(upload.id)
            await asyncio.to_thread(upload.path.unlink, missing_ok=True)
            self._progress.pop(upload.id, None)

    async def progress(self, upload_id: str) -> tuple[Upload | None, Progress]:
        """How far an upload is; one that was restored has no file any more. `NotFound`."""
        note = await self.services.state.read(last_restore)
        if note is not None and note.id == upload_id:
            return None, Progress("restored", note.counts, note.replaced_backup_id)
        upload = await self.find(upload_id)
        is_whole = upload.received == upload.size
        start = Progress("received" if is_whole else "receiving")
        return upload, self._progress.get(upload.id, start)

    async def start(self, upload_id: str, *, is_dry: bool) -> None:
        """Starts the check of an upload, and its restore unless `is_dry`."""
        async with self.busy:
            upload = await self.find(upload_id)
            if upload.received != upload.size:
                raise Conflict(
                    f"The upload has {upload.received} of {upload.size} bytes: send the rest."
                )
            self._check_idle(upload.id)
            self._progress[upload.id] = progress = Progress("checking")
            task = asyncio.create_task(self._run(upload, progress, is_dry=is_dry))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, upload: Upload, progress: Progress, *, is_dry: bool) -> None:
        folder = restore_folder(self.services.data_dir, upload.id)
        try:
            await self._check(upload, folder, progress)
            if is_dry:
                await _remove(folder)
                progress.state = "checked"
                return
            progress.state = "restoring"
            await self._restore(upload, folder, progress)
        except FairleadError as error:
            await self._refuse(upload, folder, progress, error, error.message)
        except Exception as error:  # noqa: BLE001 - callers see it in the progress
            log.error("export not restored", error=type(error).__name__)
            await self._refuse(upload, folder, progress, error, "The restore failed.")

    async def _refuse(
        self, upload: Upload, folder: Path, progress: Progress, error: Exception, sentence: str
    ) -> None:
        if progress.state == "checking" or isinstance(error, InvalidRequest):
            await _remove(folder)
        else:
            # The state may be restored all the same, now or a moment later: the folder is the next start's to
            # move into place or to delete.
            try:
                note = await self.services.state.read(last_restore)
            except FairleadError:
                note = None
            if note is not None and note.id == upload.id:
                progress.state = "restored"
                self._start_anew()
                return
        progress.state, progress.error = "refused", sentence

    async def _check(self, upload: Upload, folder: Path, progress: Progress) -> None:
        await _remove(folder)
        state = folder / "state.duckdb"
        if await asyncio.to_thread(is_archive, upload.path):
            files = await unpack_apart(upload.path, folder)
            usage = await self.keeper.inspect(
                folder / "usage.duckdb", "usage", deadline_s=CHECK_DEADLINE_S
            )
            counts = await self.keeper.inspect(state, deadline_s=CHECK_DEADLINE_S)
            progress.counts = counts | usage | {"fileCount": files}
        else:
            await asyncio.to_thread(check_disk, self.services.data_dir, upload.size)
            await asyncio.to_thread(folder.mkdir, 0o700, parents=True)
            await asyncio.to_thread(shutil.copyfile, upload.path, state)
            progress.counts = await self.keeper.inspect(state, deadline_s=CHECK_DEADLINE_S)

    async def _restore(self, upload: Upload, folder: Path, progress: Progress) -> None:
        counts = progress.counts or {}

        def note(replaced_backup_id: str) -> RestoreNote:
            return RestoreNote(upload.id, replaced_backup_id, counts)

        state = folder / "state.duckdb"
        before = await self.keeper.restore(state, note)
        progress.replaced_backup_id, progress.state = before.id, "restored"
        await asyncio.to_thread(upload.path.unlink, missing_ok=True)
        self._start_anew()

    def _start_anew(self) -> None:
        # Control starts again, which puts usage and files in place.
        on_fatal = self.services.state.database.on_fatal
        if on_fatal is not None:
            on_fatal()

    def _check_idle(self, upload_id: str) -> None:
        progress = self._progress.get(upload_id)
        if progress is not None and progress.state in ("checking", "restoring"):
            raise Conflict("The upload is being checked or restored: wait for it.")

    @property
    def _folder(self) -> Path:
        return self.services.data_dir / "incoming"

    def _list(self) -> list[Upload]:
        if not self._folder.is_dir():
            return []
        named = [(path, _NAME.fullmatch(path.name)) for path in self._folder.iterdir()]
        return [
            Upload(name[1], path, int(name[2]), path.stat().st_size)
            for path, name in named
            if name is not None
        ]

    def _begin(self, size: int) -> Upload:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        upload_id = secrets.token_hex(12)
        path = self._folder / f"{upload_id}-{size}.upload"
        path.touch(mode=0o600)
        return Upload(upload_id, path, size, 0)

    def _forget_old(self) -> None:
        for upload in self._list():
            if upload.path.stat().st_mtime < time.time() - KEPT_S:
                upload.path.unlink(missing_ok=True)


def uploads_of(services: Services) -> Uploads:
    """The process's uploads, made when they are first needed."""
    return services.singleton(Uploads, lambda: Uploads(services, keeper_of(services)))


def _append(path: Path, part: bytes) -> None:
    with path.open("ab") as file:
        size = file.tell()
        try:
            file.write(part)
            file.flush()
        except OSError:
            # A full disk took a piece of it: the caller may send the part again.
            os.ftruncate(file.fileno(), size)
            raise


async def _remove(folder: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
