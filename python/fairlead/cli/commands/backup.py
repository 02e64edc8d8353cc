"""`fairlead backup` and `fairlead restore`: copies of the state, at the gateway and as files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import uuid4

import typer

from fairlead.cli.collection import Collection
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json, show_table
from fairlead.cli.progress import transfer, waiting

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

app = typer.Typer(help="Backups of the state.", no_args_is_help=True)

_PATH: Final = "/api/db-backups"
BACKUPS: Final = Collection(
    path=_PATH,
    key="backups",
    kind="backup",
    columns={"id": "id", "created": "createdAt", "bytes": "size", "reason": "reason"},
    empty="There are no backups: create one with `fairlead backup create`.",
)
_UPLOADS: Final = f"{_PATH}/uploads"
_PATIENCE_S: Final = 600.0
_UNAVAILABLE: Final = 503
_PART_BYTES: Final = 8 * 1024 * 1024
_EVERY_S: Final = 0.3
_AWAY_S: Final = 60.0
"""How long a gateway may be away while it starts from what was put back."""
_LEAVES_WITHIN_S: Final = 3.0
"""Control ends half a second after it has answered a restore."""
_CHUNK_BYTES: Final = 256 * 1024
_COUNTS: Final = (
    *("connectionCount", "nodeCount", "comboCount", "apiKeyCount", "userCount"),
    *("requestCount", "fileCount"),
)


@app.command()
def create(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """Create a backup on the gateway. The setting `backupKeepCount` limits how many are kept."""
    from fairlead.cli.instance import Instance, answer_of

    with Instance(url, data_dir) as instance, waiting("Copying the state"):
        made = answer_of(instance.request("PUT", _PATH, timeout=_PATIENCE_S))
    if as_json:
        show_json(made)
    else:
        print_message(f"Made {made['id']} ({made['size'] / 2**20:.1f} MiB).")


@app.command("list")
def list_(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """List the backups on the gateway, newest first."""
    from fairlead.cli.instance import Instance

    with Instance(url, data_dir) as instance:
        found = instance.get(_PATH)
    BACKUPS.print_answer(found, as_json=as_json)


@app.command()
def delete(
    backup: Annotated[
        str, typer.Argument(help="The backup's id, as `fairlead backup list` shows it.")
    ],
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Delete a backup from the gateway."""
    BACKUPS.delete_by_id(backup, url, data_dir, as_json=as_json)


@app.command()
def export(
    target: Annotated[Path, typer.Argument(help="The file to create.")],
    with_usage: Annotated[
        bool, typer.Option("--all", help="Export state, usage and files as a compressed archive.")
    ] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Export the current state to a file that only you can read. The file does not contain the key of its secrets."""
    from fairlead.cli.instance import Instance

    if target.exists():
        raise CommandFailed(f"{target} already exists: name a new file.")
    path = f"{_PATH}/{'exportAll' if with_usage else 'export'}"
    with Instance(url, data_dir) as instance, instance.stream("GET", path) as answer:
        length = answer.headers.get("content-length")
        with transfer(target.name, int(length) if length else None) as advance:
            size = _write_new(target, answer.iter_bytes(_CHUNK_BYTES), advance)
    if as_json:
        show_json({"file": str(target), "size": size})
    else:
        print_message(f"Wrote {target} ({size / 2**20:.1f} MiB).")


def restore(
    backup: Annotated[
        str | None, typer.Argument(help="A backup's id, as `fairlead backup list` shows it.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Restore this export instead of a backup.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --file: show the contents and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Restore users, keys, sessions and providers from a backup."""
    from fairlead.cli.instance import Instance, answer_of

    if (backup is None) == (file is None):
        raise CommandFailed("name a backup's id or, with --file, an exported file: one of the two.")
    if dry_run and file is None:
        raise CommandFailed("--dry-run is for --file.")
    with Instance(url, data_dir) as instance:
        if not dry_run and not yes:
            question = f"The whole state of {instance.url} is replaced. Continue?"
            typer.confirm(question, abort=True, err=True)
        if file is not None:
            result = _upload(instance, file, dry_run=dry_run)
        else:
            with waiting("Putting the backup back"):
                sent = instance.request(
                    "POST", _PATH, json={"backupId": backup}, timeout=_PATIENCE_S
                )
                result = answer_of(sent)
        is_back = dry_run or _wait_until_back(instance)
    if as_json:
        show_json(result)
    else:
        _print_result(result, is_dry=dry_run)
    if not is_back:
        print_message(
            "Control is still starting: other commands fail until it has. Try them again in a moment."
        )


def _upload(instance: Instance, file: Path, *, dry_run: bool) -> dict[str, Any]:
    """Sends an export in parts and waits for what becomes of it."""
    from fairlead.cli.instance import answer_of

    try:
        with file.open("rb") as content:
            size = os.fstat(content.fileno()).st_size
            if size == 0:
                raise CommandFailed(f"{file} is empty.")
            begun = answer_of(instance.request("POST", _UPLOADS, json={"size": size}))
            path, offset = f"{_UPLOADS}/{begun['id']}", 0
            with transfer(file.name, size) as advance:
                while part := content.read(min(begun["partMaxBytes"], _PART_BYTES)):
                    sent = instance.request(
                        "PUT",
                        path,
                        params={"offset": offset},
                        content=part,
                        headers={"content-type": "application/octet-stream"},
                        timeout=_PATIENCE_S,
                    )
                    answer_of(sent)
                    offset += len(part)
                    advance(len(part))
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read ({error.strerror}).") from None
    with waiting("Checking the export" if dry_run else "Checking the export and putting it back"):
        answer_of(instance.request("POST", f"{path}/restore", json={"dryRun": dry_run}))
        done = _wait_for(instance, path)
        if done["state"] != "restored":
            # One that was restored is gone already.
            instance.delete(path)
    if done["state"] == "refused":
        raise CommandFailed(str(done["error"]))
    return {**done["counts"], "dryRun": dry_run, "replacedBackupId": done["replacedBackupId"]}


def _wait_for(instance: Instance, path: str) -> dict[str, Any]:
    """The state of an upload. Control restarts after a restore, and does not answer for a moment."""
    away_since_s: float | None = None
    while True:
        try:
            found = instance.get(path)
        except CommandFailed:
            away_since_s = away_since_s or time.monotonic()
            if time.monotonic() - away_since_s > _AWAY_S:
                raise
        else:
            away_since_s = None
            if found["state"] in ("checked", "restored", "refused"):
                return dict(found)
            if found["state"] == "received":
                raise CommandFailed("The gateway restarted meanwhile: restore once more.")
        time.sleep(_EVERY_S)


def _wait_until_back(instance: Instance) -> bool:
    """Waits until control, which starts again after a restore, answers; False when it does not in time."""
    begun_s, has_left = time.monotonic(), False
    with waiting("Waiting for control to start with the restored state"):
        while (passed_s := time.monotonic() - begun_s) < _AWAY_S:
            is_there = _is_control_there(instance)
            has_left |= not is_there
            if is_there and (has_left or passed_s > _LEAVES_WITHIN_S):
                return True
            time.sleep(_EVERY_S)
    return False


def _is_control_there(instance: Instance) -> bool:
    try:
        _, readiness = instance.probe("/readyz")
        answer = instance.request("GET", _PATH)
    except CommandFailed:
        return False
    # The caller may have other rights in the restored state: a refusal is an answer too.
    is_linked = readiness.get("control", {}).get("state") == "connected"
    return is_linked and answer.status_code != _UNAVAILABLE


def _print_result(result: dict[str, Any], *, is_dry: bool) -> None:
    rows = [[name.removesuffix("Count"), result[name]] for name in _COUNTS if name in result]
    show_table(["what", "how many"], rows, empty="")
    if is_dry:
        print_message("It can be restored; nothing was changed.")
    else:
        print_message(f"Restored. The replaced state is stored as {result['replacedBackupId']}.")


def _write_new(target: Path, chunks: Iterator[bytes], advance: Any) -> int:
    """Writes a new file whole or not at all, for its owner alone; its size in bytes. Raises `CommandFailed`."""
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    size = 0
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as out:
                for chunk in chunks:
                    out.write(chunk)
                    size += len(chunk)
                    advance(len(chunk))
                out.flush()
                os.fsync(out.fileno())
            # A link, unlike a renaming, replaces nothing.
            os.link(part, target)
        finally:
            part.unlink()
    except OSError as error:
        raise CommandFailed(f"{target} cannot be written ({error.strerror}).") from None
    return size
