"""Starting a tool pointed at the gateway, with nothing written into the user's home.

Environment and arguments come from the tool's file. A tool that reads its configuration only from a file gets a
separate home while it runs. Exit code and signals are the child's.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from fairlead.coding_tools.entry import Launch, ToolEntry
from fairlead.coding_tools.filling import (
    GatewayTarget,
    changes_of,
    filled_arguments,
    filled_texts,
)
from fairlead.coding_tools.formats.document import edit

NOT_FOUND: Final = 127
_FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Sent to this process alone."""

_OF_THE_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT)
"""Signals of the terminal (Ctrl-C) reach the child and this process."""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The program to start: its command, and the variables that are set for it."""

    command: list[str]
    environment: dict[str, str]


def plan_launch(
    tool: ToolEntry, launch: Launch, target: GatewayTarget, arguments: Sequence[str]
) -> LaunchPlan:
    """The command with the gateway's arguments before the user's own."""
    command = [tool.command, *filled_arguments(launch.arguments, target), *arguments]
    return LaunchPlan(command, filled_texts(launch.environment, target))


def run_tool(
    launch: Launch, plan: LaunchPlan, target: GatewayTarget, inherited: Mapping[str, str]
) -> int:
    """Runs it to its end: its exit code, 128 and the signal's number where one ended it, 127 where it is not there."""
    path = shutil.which(plan.command[0], path=inherited.get("PATH"))
    if path is None:
        return NOT_FOUND
    with _own_home(launch, target) as home:
        environment = {**inherited, **plan.environment, **home}
        with _forwarding() as forward_to:
            child = subprocess.Popen([path, *plan.command[1:]], env=environment)
            forward_to(child)
            code = child.wait()
    return 128 - code if code < 0 else code


@contextmanager
def _own_home(launch: Launch, target: GatewayTarget) -> Iterator[dict[str, str]]:
    """The variable that names a temporary home with the tool's files, or nothing."""
    if launch.home_variable is None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="fairlead-run-") as folder:
        for file in launch.files:
            place = Path(folder) / file.path
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.touch(mode=0o600)
            place.write_bytes(edit(file.format, b"", changes_of(file, target)))
        yield {launch.home_variable: folder}


@contextmanager
def _forwarding() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Passes signals on to the child that it is given; an interrupt of the terminal is left to it.

    A signal that comes before the child is there is passed on when it is. Signals that we ignore
    (`nohup`) stay ignored, by the child as well: only handlers, not this, end with `exec`.
    """
    child: subprocess.Popen[bytes] | None = None
    waiting: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        if child is None:
            waiting.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    def forward_to(started: subprocess.Popen[bytes]) -> None:
        nonlocal child
        child = started
        while waiting:
            forward(waiting.pop(0), None)

    handlers = dict.fromkeys(_FORWARDED, forward) | dict.fromkeys(_OF_THE_TERMINAL, _exit_on_signal)
    before = {
        each: signal.signal(each, handler)
        for each, handler in handlers.items()
        if signal.getsignal(each) is not signal.SIG_IGN
    }
    try:
        yield forward_to
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _exit_on_signal(_: int, __: FrameType | None) -> None:
    """The child gets it as well."""


def shell_lines(plan: LaunchPlan) -> list[str]:
    """The lines that `--dry-run` prints, to be pasted into a shell."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in plan.environment.items()]
    return [*exports, shlex.join(plan.command)]
