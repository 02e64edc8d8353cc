"""Which tools are installed, which version, and whether they are pointed at this gateway.

A tool's command is looked up in PATH by the name in its file, and run with the argument in its file, never with
anything from a request. All run side by side, each for at most five seconds; a slower one is killed with its
group. The answer of a command is valid until the command changes; files are read each time. A caller that does
not wait gets the known state, and the command runs meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from fairlead.coding_tools.backups import BackupStore
from fairlead.coding_tools.entry import Detection, ToolEntry
from fairlead.coding_tools.formats.change import Step, UneditableFile
from fairlead.coding_tools.formats.document import parse
from fairlead.coding_tools.home_file import HomeFile, UnsafeFile
from fairlead.moment import moment_of
from fairlead.process.minimal_environment import minimal_environment

DEADLINE_S: Final = 5.0
_AT_ONCE: Final = 8
_OUTPUT_BYTES: Final = 4_096
_BEING_ASKED: Final = "It is being asked for its version: look again in a moment."
_VERSION: Final = re.compile(rb"\d+\.\d+(?:\.[0-9A-Za-z]+)*(?:[-+][0-9A-Za-z.-]+)?")

ConfigStatus = Literal["configured", "not_configured", "not_installed", "unknown", "other"]
# The path of a command, and the time of its last change.
_Stamp = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FoundCommand:
    """`reason` says why a command that is installed cannot be run."""

    installed: bool
    runnable: bool = False
    version: str | None = None
    path: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """`endpoint` is the address in the tool's files."""

    status: ConfigStatus
    endpoint: str | None = None
    last_configured_at: datetime | None = None
    error: str | None = None


class Detector:
    """Looks for tools below one home. Keeps what it found, by the times of what it looked at."""

    def __init__(self, home: Path, store: BackupStore, own_urls: Sequence[str]) -> None:
        self._home = home
        self._store = store
        self._own_urls = tuple(own_urls)
        self._commands: dict[str, tuple[_Stamp, FoundCommand]] = {}
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._asking: dict[str, asyncio.Task[FoundCommand]] = {}

    async def find(
        self, tool: ToolEntry, *, waits: bool = True
    ) -> tuple[FoundCommand, FoundConfig]:
        """The tool's command and configuration; who does not wait is not kept by a command that is asked."""
        command = await self._command(tool, waits=waits)
        config = await asyncio.to_thread(self._config, tool, is_installed=command.installed)
        return command, config

    async def _command(self, tool: ToolEntry, *, waits: bool) -> FoundCommand:
        if tool.detection is None:
            return FoundCommand(installed=False, reason="It has no command.")
        environment = minimal_environment()
        stamp = _command_in(environment.get("PATH"), tool.detection.command)
        if stamp is None:
            return FoundCommand(installed=False, reason="Its command is not in PATH.")
        known = self._commands.get(tool.id)
        if known is not None and known[0] == stamp:
            return known[1]
        asking = self._asking.get(tool.id)
        if asking is None:
            asking = asyncio.create_task(self._detect(tool.id, stamp, tool.detection, environment))
            self._asking[tool.id] = asking
            asking.add_done_callback(lambda _: self._asking.pop(tool.id, None))
        if waits:
            # Others may wait for it, too.
            return await asyncio.shield(asking)
        return known[1] if known else FoundCommand(True, path=stamp[0], reason=_BEING_ASKED)

    async def _detect(
        self, tool_id: str, stamp: _Stamp, detection: Detection, environment: dict[str, str]
    ) -> FoundCommand:
        async with self._gate:
            found = await _query_version(stamp[0], detection, environment)
        self._commands[tool_id] = (stamp, found)
        return found

    def _config(self, tool: ToolEntry, *, is_installed: bool) -> FoundConfig:
        try:
            endpoints = list(self._endpoints(tool))
            origin = self._store.origin(tool.id)
        except (UneditableFile, UnsafeFile, OSError, ValueError) as error:
            return FoundConfig("unknown", error=str(error))
        since = moment_of(origin.applied_at_ms) if origin else None
        own = (*self._own_urls, *([origin.endpoint] if origin else []))
        ours = [each for each in endpoints if each.startswith(own)]
        if ours:
            return FoundConfig("configured", ours[0], since)
        if endpoints:
            return FoundConfig("other", endpoints[0])
        if not any(file.endpoint for file in tool.files):
            return FoundConfig("unknown" if is_installed else "not_installed")
        return FoundConfig("not_configured" if is_installed else "not_installed")

    def _endpoints(self, tool: ToolEntry) -> Iterator[str]:
        for file in tool.files:
            content = HomeFile(self._home, file.path).read().content
            if content is not None and file.endpoint is not None:
                yield from _texts_at(parse(file.format, content), file.endpoint)


def _command_in(path: str | None, command: str) -> _Stamp | None:
    """The path of a command, and the time of its last change."""
    found = shutil.which(command, path=path)
    return None if found is None else (found, Path(found).stat().st_mtime_ns)


def _texts_at(document: Any, place: Sequence[Step]) -> Iterator[str]:
    """The texts at a place; an entry that is named by its model is any entry of its list."""
    if not place:
        if isinstance(document, str):
            yield document
        return
    step, rest = place[0], place[1:]
    if isinstance(step, str):
        if isinstance(document, dict) and step in document:
            yield from _texts_at(document[step], rest)
        return
    for entry in document if isinstance(document, list) else []:
        if isinstance(entry, dict) and all(
            "%" in wanted or entry.get(name) == wanted for name, wanted in step.items()
        ):
            yield from _texts_at(entry, rest)


async def _query_version(
    path: str, detection: Detection, environment: dict[str, str]
) -> FoundCommand:
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            detection.version_argument,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return FoundCommand(True, path=path, reason=f"It cannot be started: {error.strerror}.")
    try:
        async with asyncio.timeout(DEADLINE_S):
            output = await _first_bytes(process)
            code = await process.wait()
    except TimeoutError:
        return FoundCommand(True, path=path, reason=f"It did not answer within {DEADLINE_S:g} s.")
    finally:
        await _end_group(process)
    if code != 0:
        return FoundCommand(True, path=path, reason=f"It ended with exit code {code}.")
    version = _VERSION.search(output)
    return FoundCommand(True, True, version[0].decode() if version else None, path)


async def _first_bytes(process: asyncio.subprocess.Process) -> bytes:
    """The beginning of its output; the rest is read and dropped, so that it does not wait for a reader."""
    output = b""
    while process.stdout is not None and (read := await process.stdout.read(_OUTPUT_BYTES)):
        output = (output + read)[:_OUTPUT_BYTES]
    return output


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """Kills a process that still runs, with what it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
