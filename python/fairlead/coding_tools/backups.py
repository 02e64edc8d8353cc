"""Backups of tools' configuration files: bytes as they were, in a folder each, below the data directory.

Such files may contain keys of users, so the stored bytes are sealed.

    <data directory>/coding-tools/key                             what seals them
    <data directory>/coding-tools/<tool>/<backup>/manifest.json   what it holds, and of which files
                                                  0, 1, ...       their bytes, sealed
    <data directory>/coding-tools/<tool>/origin                   which backup `undo` restores, and what was set

A folder is written under another name and renamed when it is whole, so a backup is there or not.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict

from fairlead.coding_tools.formats.change import Change
from fairlead.coding_tools.home_file import FileState
from fairlead.errors import Internal
from fairlead.moment import moment_of, now_ms
from fairlead.process.fsync import fsync_path
from fairlead.store.sealer import KEY_BYTES, Sealer, decode_key, make_secret_file

KEPT_BACKUPS: Final = 50
"""Backups of one tool; the oldest are deleted, but never the one that `undo` restores."""
Reason = Literal["apply", "manual", "restore", "undo"]

_ID: Final = re.compile(r"[0-9]{13}-[0-9a-f]{8}")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SavedFile(_Record):
    """One file of a backup; `mode` and `digest` (SHA-256) are null where there was none."""

    path: str
    mode: int | None
    digest: str | None


class Backup(_Record):
    """`files` by the numbers under which their bytes lie."""

    id: str
    tool: str
    created_at_ms: int
    reason: Reason
    files: tuple[SavedFile, ...]

    @property
    def created_at(self) -> Any:
        return moment_of(self.created_at_ms)


class AppliedFile(_Record):
    """The members that were set in a file: places with values as they were written. `digest` is the SHA-256 of
    the file afterwards, null where the user had edited it in between, so that restoring older bytes would lose that.
    """

    path: str
    changes: list[tuple[list[str | dict[str, str]], Any]]
    digest: str | None

    @classmethod
    def of(cls, path: str, changes: Iterable[Change], content: bytes | None) -> Self:
        """A file with the members that were set in it; `content` is None where its bytes hold edits of the user."""
        return cls(
            path=path,
            changes=[(list(change.doc_path), change.value) for change in changes],
            digest=None if content is None else hashlib.sha256(content).hexdigest(),
        )


class Origin(_Record):
    """The record that `undo` needs: the backup from before, what was set since, the id and SHA-256 of the key that
    was made for the tool, and the SHA-256 of the key that the tool sends.
    """

    backup_id: str
    applied_at_ms: int
    endpoint: str
    files: list[AppliedFile]
    key_id: str | None = None
    made_digest: str | None = None
    key_digest: str | None = None


def digest_of_key(key: str) -> str:
    """The SHA-256 of a key: enough to recognise it, and not to use it."""
    return hashlib.sha256(key.encode()).hexdigest()


class BackupStore:
    """The backups below a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / "coding-tools"

    def create(self, tool: str, reason: Reason, files: Iterable[tuple[str, FileState]]) -> Backup:
        """Keeps the files as they are."""
        states = list(files)
        backup = Backup(
            id=f"{now_ms():013}-{secrets.token_hex(4)}",
            tool=tool,
            created_at_ms=now_ms(),
            reason=reason,
            files=tuple(
                SavedFile(path=path, mode=state.mode, digest=state.digest) for path, state in states
            ),
        )
        place = self._folder / tool
        for folder in (self._data_dir, self._folder, place):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sealer = self._sealer()
        growing = place / f".{backup.id}"
        growing.mkdir(mode=0o700)
        for number, (_, state) in enumerate(states):
            if state.content is not None:
                name = f"{tool}/{backup.id}/{number}"
                _write(growing / str(number), sealer.seal(name, state.content))
        _write(growing / "manifest.json", backup.model_dump_json(indent=2).encode())
        fsync_path(growing)
        growing.rename(place / backup.id)
        fsync_path(place)
        self._drop_old(tool)
        return backup

    def list_all(self, tool: str | None = None) -> list[Backup]:
        """Newest first."""
        found = [
            Backup.model_validate_json((place / "manifest.json").read_bytes())
            for place in self._folder.glob(f"{'*' if tool is None else tool}/*")
            if _ID.fullmatch(place.name)
        ]
        return sorted(found, key=lambda each: each.id, reverse=True)

    def find(self, tool: str, backup_id: str) -> Backup | None:
        """The backup of this tool, or None."""
        if not _ID.fullmatch(backup_id):
            return None
        try:
            text = (self._folder / tool / backup_id / "manifest.json").read_bytes()
        except FileNotFoundError:
            return None
        return Backup.model_validate_json(text)

    def place_of(self, backup: Backup) -> Path:
        """The folder of a backup."""
        return self._folder / backup.tool / backup.id

    def contents(self, backup: Backup) -> Iterator[tuple[SavedFile, bytes | None]]:
        """Each file with its bytes, None where there was none. Raises `ValueError` for bytes that have changed."""
        for number, file in enumerate(backup.files):
            if file.digest is None:
                yield file, None
                continue
            sealed = (self.place_of(backup) / str(number)).read_bytes()
            content = self._unsealed(f"{backup.tool}/{backup.id}/{number}", sealed)
            if hashlib.sha256(content).hexdigest() != file.digest:
                raise ValueError(f"the backup {backup.id} of {file.path} is damaged")
            yield file, content

    def origin(self, tool: str) -> Origin | None:
        """The record that `undo` restores, or None when the tool is not configured by us."""
        try:
            sealed = (self._folder / tool / "origin").read_bytes()
        except FileNotFoundError:
            return None
        return Origin.model_validate_json(self._unsealed(f"{tool}/origin", sealed))

    def tools_with_the_key_of(self, tool: str) -> list[str]:
        """The ids of other tools that send the key that was made for this one."""
        own = self.origin(tool)
        if own is None or own.made_digest is None:
            return []
        others = {place.parent.name for place in self._folder.glob("*/origin")} - {tool}
        origins = {other: self.origin(other) for other in sorted(others)}
        return [
            other
            for other, origin in origins.items()
            if origin is not None and origin.key_digest == own.made_digest
        ]

    def set_origin(self, tool: str, origin: Origin | None) -> None:
        """Remembers what `undo` restores, or forgets it."""
        place = self._folder / tool / "origin"
        if origin is None:
            place.unlink(missing_ok=True)
            return
        growing = place.with_name(f".origin.{secrets.token_hex(4)}")
        _write(growing, self._sealer().seal(f"{tool}/origin", origin.model_dump_json().encode()))
        growing.rename(place)
        fsync_path(place.parent)

    def _sealer(self) -> Sealer:
        """Seals by the key of this folder, which is made when it is first needed."""
        key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        return Sealer(decode_key(make_secret_file(self._folder / "key", key)))

    def _unsealed(self, name: str, sealed: bytes) -> bytes:
        try:
            return self._sealer().unseal(name, sealed)
        except Internal:
            raise ValueError(f"{name} is damaged, or was sealed by another key") from None

    def _drop_old(self, tool: str) -> None:
        origin = self.origin(tool)
        for backup in self.list_all(tool)[KEPT_BACKUPS:]:
            if origin is None or backup.id != origin.backup_id:
                shutil.rmtree(self._folder / tool / backup.id)


def _write(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)
