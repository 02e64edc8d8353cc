"""The second half of a restore of everything: usage and files are put in place before control opens them.

The state is restored in one transaction, which also stores the id of the restore. The other checked parts are
in `restore/<id>`. At the start of control a folder of the stored id is moved into place, and any other is
deleted, so a crash at any moment leaves all of the old or all of the new. The replaced files stay in `replaced`
until the next restore.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from fairlead.process.fsync import fsync_path
from fairlead.store.connection import Connection
from fairlead.store.meta import read_meta, write_meta
from fairlead.store.prepare import usage_path

_NOTE: Final = "restored"

log = structlog.get_logger("fairlead.store")


@dataclass(frozen=True, slots=True)
class RestoreNote:
    """The last restore of an upload: its id, the counts of its rows, and the backup of the state before."""

    id: str
    replaced_backup_id: str
    counts: dict[str, int]


def restore_folder(data_dir: Path, restore_id: str) -> Path:
    """The folder of the checked parts of a restore."""
    return data_dir / "restore" / restore_id


def note_restore(con: Connection, note: RestoreNote) -> None:
    """Notes the restore in the transaction that restores the state."""
    document = {"id": note.id, "replaced": note.replaced_backup_id, "counts": note.counts}
    write_meta(con, _NOTE, json.dumps(document))


def last_restore(con: Connection) -> RestoreNote | None:
    """The last restore of an upload, or None."""
    document = read_meta(con, _NOTE)
    if document is None:
        return None
    read: dict[str, Any] = json.loads(document)
    return RestoreNote(read["id"], read["replaced"], read["counts"])


def finish_restore(data_dir: Path, note: RestoreNote | None) -> None:
    """Moves what the noted restore left waiting into place, and forgets others. Blocking, before the usage database
    is opened; may be repeated after a crash.
    """
    waiting = data_dir / "restore"
    if not waiting.is_dir():
        return
    folder = None if note is None else restore_folder(data_dir, note.id)
    if (
        note is not None
        and folder is not None
        and any((folder / name).exists() for name in ("usage.duckdb", "files"))
    ):
        replaced = data_dir / "replaced"
        _begin_replacing(replaced, note.id)
        _put_usage(data_dir, folder, replaced)
        _put_files(data_dir, folder, replaced)
        fsync_path(data_dir)
        log.info("usage and files restored", restore=note.id)
    shutil.rmtree(waiting)


def _begin_replacing(replaced: Path, restore_id: str) -> None:
    """An empty folder for the replaced files; a folder of this restore, which was interrupted, is used again."""
    mark = replaced / f"{restore_id}.restore"
    if not mark.exists():
        shutil.rmtree(replaced, ignore_errors=True)
        replaced.mkdir(mode=0o700)
        mark.touch(mode=0o600)


def _put_usage(data_dir: Path, folder: Path, replaced: Path) -> None:
    source, target = folder / "usage.duckdb", usage_path(data_dir)
    if not source.exists():
        return
    # A link first: there is no moment without a database of this name.
    with contextlib.suppress(FileNotFoundError, FileExistsError):
        os.link(target, replaced / target.name)
    # Its log goes with it, or it would be replayed into the other database. Nothing opens what lacks its log: the
    # next start comes here first.
    log_file = target.with_name(f"{target.name}.wal")
    with contextlib.suppress(FileNotFoundError):
        log_file.rename(replaced / log_file.name)
    fsync_path(replaced)
    fsync_path(data_dir)
    source.replace(target)


def _put_files(data_dir: Path, folder: Path, replaced: Path) -> None:
    source, target = folder / "files", data_dir / "files"
    if not source.is_dir():
        return
    if target.is_dir() and not (replaced / "files").exists():
        target.rename(replaced / "files")
    source.rename(target)
