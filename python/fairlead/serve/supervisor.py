"""The life of one instance, from the first check to the exit of the last child.

`python -m fairlead.serve.supervisor <descriptor>`, which `fairlead serve` becomes when it has checked its settings.

Start: data directory and its lock, port, data files, secrets, control, relay, `/readyz`, and only then the lines for
standard output, of which the first says ready. A failed check raises `Refusal` before anything was changed; a later
failure raises `StartFailed`, with the reason in the log.

Stop, on SIGTERM, SIGINT or SIGHUP: the relay drains, control flushes its writes, the stand-in ends. A second
signal kills every child at once.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Final

from fairlead.errors import Refusal
from fairlead.identity.local_token import make_local_token
from fairlead.net.proxy_variables import PAGE, ignored_proxies, proxy_warning
from fairlead.process.start_check import check_public
from fairlead.serve.child import Child
from fairlead.serve.directory import DataDirectory
from fairlead.serve.failure import StartFailed
from fairlead.serve.instance import Instance, take_instance
from fairlead.serve.log import LogSink
from fairlead.serve.planes import CONTROL_STOPS_S, Planes
from fairlead.serve.port import ClaimedPort
from fairlead.serve.readiness import ready_worker
from fairlead.store.sealer import load_key
from fairlead.store.status import StoreStatus
from fairlead.text.sentence import opened

_READY_WITHIN_S: Final = 60.0
_ASK_EVERY_S: Final = 0.03
# With what workers recorded last, which it brings to a control.
_TUNNEL_STOPS_S: Final = 15.0
_ACP_STOPS_S: Final = 5.0
_STANDIN_STOPS_S: Final = 3.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(instance: Instance) -> int:
    """Runs an instance until it is stopped; the exit code. Raises `Refusal` and `StartFailed`."""
    with (
        DataDirectory(Path(instance.data_dir)) as directory,
        ClaimedPort(instance.host, instance.port) as port,
    ):
        return asyncio.run(_Supervisor(instance, directory, port).run())


class _Supervisor:
    def __init__(
        self,
        instance: Instance,
        directory: DataDirectory,
        port: ClaimedPort,
    ) -> None:
        self._instance = instance
        self._directory = directory
        self._address = port.address
        self._tls = instance.tls_certificate is not None
        self._log = LogSink()
        self._planes = Planes(instance, directory, self._log)
        self._children: dict[str, Child] = {}
        self._stop = asyncio.Event()
        self._exit_code = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            # Signals that nohup set to be ignored stay ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._on_signal, number)
        try:
            starting = asyncio.create_task(self._start())
            stopping = asyncio.create_task(self._stop.wait())
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
                await asyncio.wait({starting})
            if not starting.cancelled():
                starting.result()
                await self._watch(stopping)
        finally:
            await self._stop_children()
            self._log.close()
        return self._exit_code

    async def _watch(self, stopping: asyncio.Task[bool]) -> None:
        """Runs control's watchdog, where control is here, until the instance stops."""
        if (control := self._children.get("control")) is None:
            await stopping
            return
        watchdog = self._planes.watchdog(control)
        watching = asyncio.create_task(watchdog.run())
        await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            # The shutdown that follows also stops a control that is being restarted.
            watching.cancel()
            await asyncio.wait({watching})
        if not watching.cancelled() and (fault := watching.exception()) is not None:
            # A failed watchdog must not stop inference.
            self._log.add(f"control's watchdog ended: {fault!r}")
        await stopping

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop.is_set():
            self._exit_code = 128 + number
            for child in self._children.values():
                child.kill()
        self._stop.set()

    # --- starting

    async def _start(self) -> None:
        if proxies := ignored_proxies():
            self._log.add(
                f"WARNING: {proxy_warning(proxies)}. Set an outbound proxy instead: {PAGE}."
            )
        role = self._instance.role
        is_new = not (self._directory.path / "usage.duckdb").exists()
        # A relay alone has no database, and whoever runs its controls has their owner's password.
        status = StoreStatus(True, True) if role == "relay" else await self._prepare()
        if self._instance.is_protected:
            check_public(
                self._instance.host,
                self._instance.initial_password,
                status.password_stored,
                keys_required=self._instance.require_api_key,
            )
        data_dir = self._directory.path
        secret_key = load_key(data_dir, self._instance.secret_key)
        local_token = "" if role == "relay" else make_local_token(data_dir)

        if (acp := self._planes.acp()) is not None:
            await self._run_child(acp)
        if role != "relay":
            await self._run_child(self._planes.control())
        if (tunnel := self._planes.tunnel()) is not None:
            await self._run_child(tunnel)
        for relay in self._planes.relays(self._address, secret_key):
            await self._run_child(relay)
        await self._until_ready()
        scheme = "https" if self._tls else "http"
        url = f"{scheme}://{self._shown_host()}"
        lines = [f"fairlead ready {url}"]
        if self._instance.demo:
            # Imported here, because this step alone needs an HTTP client, which would take megabytes for good.
            from fairlead.serve.demo import Demo

            demo = Demo(url, local_token, self._instance.require_api_key, self._log)
            await self._run_child(demo.child)
            lines.append(await demo.set_up(self._directory.path if is_new else None))
        lines += self._owner_lines(status, url)
        self._directory.record_url(url)
        for line in lines:
            print(line, flush=True)

    def _owner_lines(self, status: StoreStatus, url: str) -> list[str]:
        """How somebody becomes the owner, where nobody can sign in as one yet."""
        if status.password_stored or self._instance.initial_password is not None:
            return []
        by_command = "run `fairlead owner reset-password` on this machine"
        if status.has_owner:
            return [f"The owner has no password: {by_command}, or start with INITIAL_PASSWORD."]
        if self._instance.are_passwords_off:
            return [f"No owner yet, and passwords are switched off: {by_command}."]
        return [
            f"No owner yet: open {url}/setup to choose a password.",
            f"From another machine or through a proxy it requires the set-up token {self._planes.setup_token}",
        ]

    def _shown_host(self) -> str:
        if self._instance.host == "localhost":
            return f"localhost:{self._address.port}"
        return self._address.reachable

    async def _prepare(self) -> StoreStatus:
        """Verifies and creates the data files in a separate process."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "fairlead.store.prepare",
            str(self._directory.path),
            env=self._planes.control_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            process_group=0,
        )
        try:
            out, errors = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode == 2:
            raise Refusal(errors.decode(errors="replace").strip())
        if process.returncode != 0:
            for line in errors.splitlines():
                self._log.line(line)
            raise StartFailed("the data files could not be checked.")
        return StoreStatus(**json.loads(out))

    async def _run_child(self, child: Child) -> None:
        self._children[child.name] = child
        await child.start()

    async def _until_ready(self) -> None:
        deadline_s = asyncio.get_running_loop().time() + _READY_WITHIN_S
        ready: set[str] = set()
        # Each connection is one worker's, and which one the kernel says.
        needs_control = self._instance.role != "relay"
        while len(ready) < self._instance.workers:
            worker = await ready_worker(self._address, tls=self._tls, needs_control=needs_control)
            if worker is not None and worker not in ready:
                ready.add(worker)
                continue
            for child in self._children.values():
                if child.exited.is_set():
                    raise StartFailed(f"the {child.name} plane ended while starting.")
            if asyncio.get_running_loop().time() > deadline_s:
                raise StartFailed(f"not ready after {_READY_WITHIN_S:g} s.")
            await asyncio.sleep(_ASK_EVERY_S)

    # --- stopping

    async def _stop_children(self) -> None:
        """Stops the relays, the tunnel, control, the coding tools, the stand-in: each before those that it calls."""
        grace_s = {
            "tunnel": _TUNNEL_STOPS_S,
            "control": float(CONTROL_STOPS_S),
            "acp": _ACP_STOPS_S,
            "standin": _STANDIN_STOPS_S,
        }
        relays = [child for name, child in self._children.items() if name.startswith("relay")]
        await asyncio.gather(*(relay.stop(self._planes.relay_stops_s) for relay in relays))
        for name, seconds in grace_s.items():
            if (child := self._children.get(name)) is not None:
                await child.stop(seconds)


def main(arguments: list[str]) -> int:
    """Serves what the descriptor holds. Exit code 2: not attempted; 1: it did not come up."""
    try:
        return serve(take_instance(int(arguments[0])))
    except Refusal as refusal:
        print(f"fairlead: {opened(refusal.sentence)}", file=sys.stderr)
        return 2
    except StartFailed as failure:
        print(f"fairlead: {opened(failure.sentence)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of the ready line has gone.
        sys.stderr.close()
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
