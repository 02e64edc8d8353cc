"""Configuring a tool: what would be written, writing it, taking it back, and restoring a backup.

A backup of all the tool's files is made before the first of them is touched. Each file is then replaced whole, and what
was set in it is remembered, so that `undo` can put back the bytes from before, or, where the user has edited the file
since, take out what was set and leave the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.coding_tools.backups import (
    AppliedFile,
    Backup,
    BackupStore,
    Origin,
    Reason,
    digest_of_key,
)
from fairlead.coding_tools.entry import ToolEntry, ToolFile
from fairlead.coding_tools.filling import GatewayTarget, changes_of, old_paths
from fairlead.coding_tools.formats.change import (
    ABSENT,
    Change,
    UneditableFile,
    inverse,
    name_of,
    value_at,
)
from fairlead.coding_tools.formats.document import edit, parse
from fairlead.coding_tools.home_file import SECRET_MODE, FileState, HomeFile, LockedFile, UnsafeFile
from fairlead.coding_tools.redaction import redacted
from fairlead.moment import now_ms

USUAL_MODE = 0o644


class ConfigurationFailed(Exception):
    """A tool's files cannot be read or written as they are; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """A file before and after; `changes` are what is set, and `old_members` what an older form left in it."""

    file: ToolFile
    path: Path
    before: bytes | None
    after: bytes
    changes: list[Change]
    old_members: list[str]
    preview: str

    @property
    def is_changed(self) -> bool:
        return self.before != self.after and not (self.before is None and not self.changes)


@dataclass(frozen=True, slots=True)
class _Request:
    """The values wanted in a tool's files; `origin` is the record of the last `apply`."""

    tool: ToolEntry
    target: GatewayTarget
    origin: Origin | None
    migration: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """The files that `apply` wrote, and the backup that it made first; no backup where nothing had to change."""

    files: list[FilePlan]
    backup: Backup | None


class Configurator:
    """Reads and writes the files of tools below one home, with backups below one data directory."""

    def __init__(self, home: Path, store: BackupStore) -> None:
        self.home = home
        self.store = store

    def plan(self, tool: ToolEntry, target: GatewayTarget, *, migration: bool) -> list[FilePlan]:
        """The files as `apply` would write them. Raises `ConfigurationFailed`."""
        with _failures():
            request = _Request(tool, target, self.store.origin(tool.id), migration)
            return [
                self._file_plan(request, file, self._at(file).read().content) for file in tool.files
            ]

    def apply(
        self, tool: ToolEntry, target: GatewayTarget, *, migration: bool, key_id: str | None = None
    ) -> Applied:
        """Backs up and writes. Raises `ConfigurationFailed`, with nothing written where a file cannot be edited."""
        with _failures(), contextlib.ExitStack() as stack:
            origin = self.store.origin(tool.id)
            wanted = self.plan(tool, target, migration=migration)
            if not any(plan.is_changed for plan in wanted):
                if origin is not None:
                    self.store.set_origin(tool.id, _with_key(origin, target.key, key_id))
                return Applied(wanted, None)
            request = _Request(tool, target, origin, migration)
            locked = self._lock(stack, [plan.file.path for plan in wanted if plan.is_changed])
            plans = [
                self._file_plan(request, file, locked[file.path].state.content)
                if file.path in locked
                else plan
                for file, plan in zip(tool.files, wanted, strict=True)
            ]
            backup = self._back_up(tool, "apply", locked)
            made = _origin_of(plans, backup.id, target.url, origin)
            self.store.set_origin(tool.id, _with_key(made, target.key, key_id))
            for plan in plans:
                if plan.is_changed:
                    locked_file = locked[plan.file.path]
                    locked_file.replace(plan.after, _mode(plan.file, locked_file.state.mode))
        return Applied(plans, backup)

    def undo(self, tool: ToolEntry) -> tuple[Backup, list[Path]]:
        """Takes back what was applied: the backup that was made of the state before, and the files that were put
        back. Raises `ConfigurationFailed`.
        """
        with _failures(), contextlib.ExitStack() as stack:
            origin = self.store.origin(tool.id)
            before = self.store.find(tool.id, origin.backup_id) if origin else None
            if origin is None or before is None:
                raise ConfigurationFailed(f"{tool.name} was not configured by fairlead.")
            applied = {each.path: each for each in origin.files}
            kinds = {file.path: file for file in tool.files}
            originals = dict(self._originals(before))
            locked = self._lock(stack, [path for path in applied if path in originals])
            # Errors are found before anything is written.
            results = {
                path: _taken_back(applied[path], kinds.get(path), locked_file, originals[path][0])
                for path, locked_file in locked.items()
            }
            safety = self._back_up(tool, "undo", locked)
            for path, content in results.items():
                _put(locked[path], content, originals[path][1])
            self.store.set_origin(tool.id, None)
        return safety, [self.home / path for path in results]

    def restore(self, tool: ToolEntry, backup: Backup) -> tuple[Backup, list[Path]]:
        """Restores a backup's bytes, after backing up the current ones. Raises `ConfigurationFailed`."""
        with _failures(), contextlib.ExitStack() as stack:
            originals = dict(self._originals(backup))
            locked = self._lock(stack, list(originals))
            safety = self._back_up(tool, "restore", locked)
            for path, (content, mode) in originals.items():
                _put(locked[path], content, mode)
        return safety, [self.home / path for path in originals]

    def back_up(self, tool: ToolEntry, reason: Reason) -> Backup:
        """Keeps the tool's files as they are. Raises `ConfigurationFailed`."""
        with _failures():
            states = [(file.path, self._at(file).read()) for file in tool.files]
            return self.store.create(tool.id, reason, states)

    def _at(self, file: ToolFile) -> HomeFile:
        return HomeFile(self.home, file.path)

    def _lock(self, stack: contextlib.ExitStack, paths: Sequence[str]) -> dict[str, LockedFile]:
        """The files, their folders locked in one order, so that two writers never wait for each other."""
        locked: dict[str, LockedFile] = {}
        folders: dict[Path, LockedFile] = {}
        for path in sorted(paths):
            folder = Path(path).parent
            if folder in folders:
                locked[path] = folders[folder].beside(self.home / path)
            else:
                locked[path] = stack.enter_context(HomeFile(self.home, path).locked())
                folders[folder] = locked[path]
        return locked

    def _back_up(self, tool: ToolEntry, reason: Reason, locked: dict[str, LockedFile]) -> Backup:
        states = [
            (file.path, locked[file.path].state if file.path in locked else self._at(file).read())
            for file in tool.files
        ]
        known = {path for path, _ in states}
        states += [
            (path, locked_file.state) for path, locked_file in locked.items() if path not in known
        ]
        return self.store.create(tool.id, reason, states)

    def _originals(self, backup: Backup) -> Iterator[tuple[str, tuple[bytes | None, int | None]]]:
        for file, content in self.store.contents(backup):
            yield file.path, (content, file.mode)

    def _file_plan(self, request: _Request, file: ToolFile, before: bytes | None) -> FilePlan:
        target = request.target
        path = self.home / file.path
        content = before or b""
        try:
            document = parse(file.format, content)
            changes = changes_of(file, target)
            old = [
                place
                for place in old_paths(file, target)
                if value_at(document, place) is not ABSENT
            ]
            first = self._taken_out(request, file, document, changes)
            first += [Change(place, ABSENT) for place in old] if request.migration else []
            after = edit(file.format, content, [*first, *changes])
            preview = redacted(after.decode(), parse(file.format, after), target.key)
        except UneditableFile as error:
            raise ConfigurationFailed(f"{path} was not changed: {error}") from None
        return FilePlan(
            file, path, before, after, changes, [name_of(each) for each in old], preview
        )

    def _taken_out(
        self, request: _Request, file: ToolFile, document: Any, changes: list[Change]
    ) -> list[Change]:
        """Members that an earlier `apply` set and this one does not, such as a model that is no longer there."""
        tool, origin = request.tool, request.origin
        applied = next(
            (each for each in (origin.files if origin else []) if each.path == file.path), None
        )
        backup = self.store.find(tool.id, origin.backup_id) if origin else None
        if applied is None or backup is None:
            return []
        content, _ = dict(self._originals(backup)).get(file.path, (None, None))
        places = [change.doc_path for change in changes]
        stale = [each for each in _changes_of(applied) if each.doc_path not in places]
        return inverse(parse(file.format, content or b""), document, stale)


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Failures of files and backups as one kind."""
    try:
        yield
    except (UnsafeFile, UneditableFile) as error:
        raise ConfigurationFailed(str(error)) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise ConfigurationFailed(f"{where}{error.strerror or error}.") from None
    except ValueError as error:
        raise ConfigurationFailed(f"a backup cannot be read: {error}.") from None


def _origin_of(plans: list[FilePlan], backup_id: str, url: str, before: Origin | None) -> Origin:
    """The record for `undo`: the first backup stays the one that it restores."""
    files = {each.path: each for each in (before.files if before else [])}
    for plan in plans:
        if not plan.is_changed and plan.file.path not in files:
            continue
        earlier = files.get(plan.file.path)
        is_ours = earlier is None or earlier.digest == FileState(plan.before).digest
        files[plan.file.path] = AppliedFile.of(
            plan.file.path, plan.changes, plan.after if is_ours else None
        )
    return Origin(
        backup_id=before.backup_id if before else backup_id,
        applied_at_ms=now_ms(),
        endpoint=url,
        files=list(files.values()),
        key_id=before.key_id if before else None,
        made_digest=before.made_digest if before else None,
    )


def _with_key(origin: Origin, key: str, key_id: str | None) -> Origin:
    """The record with the key that the tool sends now; `key_id` where the key was made for the tool."""
    digest = digest_of_key(key) if key else None
    made = {"key_id": key_id, "made_digest": digest} if key_id else {}
    return origin.model_copy(update={"key_digest": digest, **made})


def _changes_of(applied: AppliedFile) -> list[Change]:
    return [Change(tuple(place), value) for place, value in applied.changes]


def _taken_back(
    applied: AppliedFile, file: ToolFile | None, locked: LockedFile, original: bytes | None
) -> bytes | None:
    """The file's bytes after `undo`; None where there is to be none."""
    is_untouched = locked.state.digest == applied.digest and applied.digest is not None
    if is_untouched or locked.state.content is None or file is None:
        return original
    before = parse(file.format, original or b"")
    now = locked.state.content
    return edit(file.format, now, inverse(before, parse(file.format, now), _changes_of(applied)))


def _put(file: LockedFile, content: bytes | None, mode: int | None) -> None:
    if content is None:
        file.remove()
    else:
        file.replace(content, SECRET_MODE if mode is None else mode)


def _mode(file: ToolFile, before: int | None) -> int:
    """A file with a secret is for its owner alone; another one keeps the mode that it had."""
    if file.secret:
        return SECRET_MODE
    return USUAL_MODE if before is None else before
