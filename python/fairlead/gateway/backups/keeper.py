"""Making and restoring copies of the state, one at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import duckdb
import structlog

from fairlead.errors import InvalidRequest, NotFound, StorageUnavailable
from fairlead.gateway.backups.archive import files_bytes, pack
from fairlead.gateway.backups.folder import Backup, Folder, Reason, Retention
from fairlead.moment import now_ms
from fairlead.process.minimal_environment import minimal_environment
from fairlead.store.backup import copy_to, detach_copy, restore_from
from fairlead.store.blobs.blob import Blobs
from fairlead.store.blobs.blob import copy_to as copy_content_to
from fairlead.store.blobs.location import blobs_of
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.owner_bytes import check_disk
from fairlead.store.pending_restore import RestoreNote, note_restore
from fairlead.store.services import Services

Kind = Literal["state", "usage"]

COPY_DEADLINE_S = 50.0
INSPECT_DEADLINE_S = 40.0
SENTENCE_MAX_CHARS = 300
# The names of files' contents in their store.
CONTENTS = "files"

log = structlog.get_logger("fairlead.gateway")


@dataclass(slots=True)
class Keeper:
    """Makes and restores backups; one object for the process, one operation at a time."""

    services: Services
    folder: Folder
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def make(self, reason: Reason) -> Backup:
        """Makes a backup of the state as it is now and keeps it."""
        async with self.busy:
            return await self._make(reason)

    async def copy(self, database: Database) -> Path:
        """A temporary copy of a database; the caller deletes it."""
        async with self.busy:
            return await self._copy(database)

    async def _check_disk(self, size: int) -> None:
        await asyncio.to_thread(check_disk, self.services.data_dir, size)

    async def archive(self) -> Path:
        """State, usage and files, compressed, in a temporary file that the caller deletes."""
        blobs = blobs_of(self.services)
        async with self.busy:
            parts: list[tuple[str, Path]] = []
            copies: Path | None = None
            try:
                files = blobs.path(CONTENTS)
                if files is None:
                    copies = files = await asyncio.to_thread(self.folder.new_folder)
                    await self._copy_contents(blobs, files)
                for database in (self.services.state.database, self.services.usage):
                    part = await self._copy(database)
                    parts.append((f"{database.stem}.duckdb", part))
                await self._check_disk(await asyncio.to_thread(files_bytes, files))
                target = await asyncio.to_thread(self.folder.new_file)
                try:
                    await asyncio.to_thread(pack, parts, files, target)
                except BaseException:
                    self.folder.discard(target)
                    raise
                return target
            finally:
                for _, part in parts:
                    await asyncio.to_thread(self.folder.discard, part)
                if copies is not None:
                    await asyncio.to_thread(shutil.rmtree, copies, ignore_errors=True)

    async def _copy_contents(self, blobs: Blobs, folder: Path) -> None:
        """Copies the contents of files from a store that is elsewhere."""
        listed = await blobs.list(CONTENTS)
        await self._check_disk(sum(blob.size for blob in listed))
        for blob in listed:
            # It may be deleted meanwhile: then the state that is copied later does not have it either.
            with contextlib.suppress(FileNotFoundError):
                await copy_content_to(blobs, blob.name, folder / blob.file)

    async def receive(self, content: bytes) -> Path:
        """Writes an uploaded file to a temporary file."""
        await self._check_disk(len(content))
        part = await asyncio.to_thread(self.folder.new_file)
        await asyncio.to_thread(_write, part, content)
        return part

    async def borrow(self, backup: Backup) -> Path:
        """A temporary copy of a backup: restoring may migrate it, and the backup itself must not
        change.
        """
        await self._check_disk(backup.size)
        part = await asyncio.to_thread(self.folder.new_file)
        try:
            await self.folder.copy(backup, part)
        except BaseException as error:
            self.folder.discard(part)
            if isinstance(error, FileNotFoundError):
                raise NotFound("There is no backup with this id any more.") from None
            raise
        return part

    async def inspect(
        self, part: Path, kind: Kind = "state", *, deadline_s: float = INSPECT_DEADLINE_S
    ) -> dict[str, int]:
        """Counts the rows in the file, in a separate process because a damaged file may crash it. Raises
        `InvalidRequest` if the file cannot be restored.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "fairlead.store.backup",
            kind,
            str(part),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=minimal_environment(),
        )
        try:
            async with asyncio.timeout(deadline_s):
                output, refused = await process.communicate()
        except BaseException as error:
            process.kill()
            await process.wait()
            if isinstance(error, TimeoutError):
                raise StorageUnavailable("The file could not be read in time.") from None
            raise
        if process.returncode == 0:
            counts: dict[str, int] = json.loads(output)
            return counts
        sentence = refused.decode(errors="replace").strip().splitlines()[-1:] or ["It is damaged."]
        if process.returncode != 2:
            sentence = ["The file is damaged."]
        reason = sentence[0].replace(str(part), "The file")[:SENTENCE_MAX_CHARS]
        raise InvalidRequest(f"The backup cannot be restored: {reason} Nothing was changed.")

    async def restore(self, part: Path, note: Callable[[str], RestoreNote] | None = None) -> Backup:
        """Puts an inspected file in place of the state, and backs up the state that it replaces. `note` of that
        backup's id is stored with it.
        """
        async with self.busy:
            before = await self._make("pre-restore")
            state = self.services.state

            def put_back(con: Connection) -> None:
                restore_from(con, part, state.sealer)
                if note is not None:
                    note_restore(con, note(before.id))

            try:
                await state.commit(put_back)
            except duckdb.Error as error:
                log.warning("backup not restored", error=type(error).__name__)
                raise InvalidRequest(
                    "The backup cannot be restored: its tables are not those of this version. "
                    "Nothing was changed."
                ) from None
            finally:
                await state.database.write(detach_copy)
            log.warning("state restored from a backup", replaced=before.id)
            return before

    async def delete(self, backup: Backup) -> None:
        """Deletes a backup."""
        async with self.busy:
            await self.folder.delete(backup)

    async def _make(self, reason: Reason) -> Backup:
        part = await self._copy(self.services.state.database)
        try:
            made = await self.folder.keep(part, reason)
        except BaseException:
            self.folder.discard(part)
            raise
        settings = await self.services.state.read(read_operator_settings)
        retention = Retention(settings.backup_keep_count, settings.backup_keep_days)
        for old in await self.folder.prune(retention, now_ms()):
            log.info("old backup deleted", backup=old.id)
        return made

    async def _copy(self, database: Database) -> Path:
        # A copy is hardly larger than the file, which may have free blocks.
        await self._check_disk(database.path.stat().st_size if database.path else 0)
        part = await asyncio.to_thread(self.folder.new_file)
        try:
            await database.read(lambda con: copy_to(con, part), deadline_s=COPY_DEADLINE_S)
        except BaseException:
            self.folder.discard(part)
            raise
        return part


def keeper_of(services: Services) -> Keeper:
    """The process's keeper, made when it is first needed."""
    return services.singleton(
        Keeper, lambda: Keeper(services, Folder(services.data_dir, blobs_of(services)))
    )


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
