"""A supervised child process: restarted when it exits unexpectedly, stopped on request."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

from fairlead.serve.log import LogSink

_FIRST_DELAY_S: Final = 0.1
_LONGEST_DELAY_S: Final = 5.0
_STEADY_AFTER_S: Final = 10.0


class Child:
    """A child in its own session, `python -m fairlead.serve <name> <arguments>`.

    `exited` is set at its first unexpected exit, which is a failure during startup. `starts` counts its processes
    so far, `environment` is theirs and holds secrets.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: LogSink,
        *,
        keep_open: Sequence[int] = (),
        plane: str | None = None,
    ) -> None:
        self.name = name
        self._plane = plane or name
        self.exited = asyncio.Event()
        self.starts = 0
        self._arguments = arguments
        self.environment = environment
        self._log = log
        self._keep_open = keep_open
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Starts the process and its supervision."""
        await self._spawn()
        self._keep(self._watch())

    async def stop(self, grace_s: float) -> None:
        """Asks the process to end, kills its session after `grace_s` seconds, waits until it is gone."""
        self._stopping.set()
        await self._end(grace_s)
        await asyncio.gather(*self._tasks)

    async def restart_hung(self) -> None:
        """Kills a process that answers nothing; a new one is started as after an unexpected exit.

        It is not asked to end. A process that comes back to life within a grace period would end in good order,
        and the work
        that made it hang would not count as work that a process did not survive: it would be started again each time.
        """
        process = self._process
        if process is not None and process.returncode is None:
            _kill_group(process)
            await process.wait()

    async def _end(self, grace_s: float) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), grace_s)
        except TimeoutError:
            self._log.add(f"{self.name} did not stop in {grace_s:g} s and is killed")
            _kill_group(process)
            await process.wait()

    def kill(self) -> None:
        """Kills the process and its group at once."""
        self._stopping.set()
        if self._process is not None and self._process.returncode is None:
            _kill_group(self._process)

    async def _spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "fairlead.serve",
            self._plane,
            "--parent",
            str(os.getpid()),
            *self._arguments,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            process_group=0,
            pass_fds=self._keep_open,
        )
        self.starts += 1
        if self._process.stdout is not None:
            self._keep(self._log.pump(self._process.stdout))

    async def _watch(self) -> None:
        delay_s = _FIRST_DELAY_S
        while self._process is not None:
            started_s = time.monotonic()
            code = await self._process.wait()
            if self._stopping.is_set():
                return
            self.exited.set()
            if time.monotonic() - started_s >= _STEADY_AFTER_S:
                delay_s = _FIRST_DELAY_S
            self._log.add(
                f"{self.name} ended with {_exit_name(code)}, started again in {delay_s:g} s"
            )
            try:
                await asyncio.wait_for(self._stopping.wait(), delay_s)
                return
            except TimeoutError:
                delay_s = min(delay_s * 2, _LONGEST_DELAY_S)
            await self._spawn()
            if self._stopping.is_set():
                self.kill()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _kill_group(process: asyncio.subprocess.Process) -> None:
    os.killpg(process.pid, signal.SIGKILL)


def _exit_name(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
