"""What `fairlead doctor` looks at on this machine: settings, port, files, disk, clock and optional parts."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlead.cli.failure import CommandFailed
from fairlead.cli.finding import Finding, failure, fine, warning
from fairlead.errors import Refusal

_DISK_FAILURE_BYTES: Final = 256 * 2**20
"""Space that files leave free on a disk whatever their settings are."""
_DISK_WARNING_BYTES: Final = 2 * 2**30
_CLOCK_MS: Final = 60_000
_PRIVATE: Final = (
    "cli-token",
    "secret.key",
    "state.duckdb",
    "usage.duckdb",
    "snapshot.json",
    "backups",
    "spool",
)


def machine_findings(data_dir: Path) -> Iterator[Finding]:
    """Everything that can be seen without asking the gateway."""
    folder = data_dir.expanduser().absolute()
    yield from _settings(folder)
    if not folder.is_dir():
        yield warning(
            "files", f"{folder} does not exist yet", "start the gateway: `fairlead serve` makes it"
        )
        return
    yield from _modes(folder)
    yield _disk(folder)
    yield _clock(folder)
    yield from _optional_parts()


def _settings(folder: Path) -> Iterator[Finding]:
    """Whether the gateway would start with this environment, and whether its port can be had."""
    from fairlead.cli.instance_lock import is_in_use
    from fairlead.serve.port import ClaimedPort
    from fairlead.settings.serve import ServeSettings

    try:
        settings = ServeSettings.load(data_dir=folder)
    except Refusal as refusal:
        yield failure(
            "config", refusal.sentence, "correct that variable in the gateway's environment"
        )
        return
    yield fine("config", "the environment's settings are in order")
    try:
        if is_in_use(folder):
            yield fine("port", f"an instance runs on {folder}")
            return
        with ClaimedPort(settings.host, settings.port):
            yield fine("port", f"port {settings.port} is free")
    except CommandFailed as failed:
        yield failure("port", failed.sentence, "run `fairlead doctor` as the gateway's user")
    except Refusal as refusal:
        yield failure("port", refusal.sentence, "end what has it, or set FAIRLEAD_PORT")


def _modes(folder: Path) -> Iterator[Finding]:
    wrong = []
    for path in (folder, *(folder / name for name in _PRIVATE)):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            yield failure(
                "files",
                f"{path} cannot be looked at ({error.strerror})",
                "run `fairlead doctor` as the user that the gateway runs as",
            )
            return
        if found.st_uid != os.geteuid():
            yield failure(
                "files",
                f"{path} belongs to user {found.st_uid}, and this is user {os.geteuid()}",
                f"run `chown -R $(id -u) {folder}` as root, or run as its user",
            )
        if stat.S_IMODE(found.st_mode) & 0o077 and not stat.S_ISLNK(found.st_mode):
            wrong.append(path)
    for path in wrong:
        yield failure("files", f"others may read {path}", f"run `chmod go= {path}`")
    if not wrong:
        yield fine("files", f"what is in {folder} is private")


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{free / 2**30:.1f} GiB are free on the disk of {folder}"
    fix = "make room, or set usageRetentionDays and fileStorageMb lower with `fairlead config set`"
    if free < _DISK_FAILURE_BYTES:
        return failure("disk", text, fix)
    return warning("disk", text, fix) if free < _DISK_WARNING_BYTES else fine("disk", text)


def _clock(folder: Path) -> Finding:
    """Files that are newer than now tell that the clock was set back."""
    from fairlead.moment import now_ms

    newest_ms = max(
        (
            path.stat().st_mtime_ns // 1_000_000
            for path in folder.iterdir()
            if path.is_file() and not path.is_symlink()
        ),
        default=0,
    )
    ahead_ms = newest_ms - now_ms()
    if ahead_ms > _CLOCK_MS:
        return failure(
            "clock",
            f"files of the gateway are {ahead_ms // 1000} s newer than now",
            "set the clock by NTP (`timedatectl set-ntp true`)",
        )
    return fine("clock", "no file of the gateway is newer than now")


def _optional_parts() -> Iterator[Finding]:
    from fairlead.process.extra import EXTRAS, install_command, is_installed

    for extra in EXTRAS:
        text = (
            f"{extra} is installed"
            if is_installed(extra)
            else f"{extra} is not installed; `{install_command(extra)}` adds it"
        )
        yield fine("extras", text)
