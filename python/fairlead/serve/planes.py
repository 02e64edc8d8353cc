"""The two planes as child processes: command lines and environment."""

from __future__ import annotations

import json
import math
import secrets
from pathlib import Path
from typing import Final

from fairlead import __version__
from fairlead.serve.child import Child
from fairlead.serve.directory import DataDirectory
from fairlead.serve.environment import child_environment
from fairlead.serve.log import LogSink
from fairlead.serve.port import Address
from fairlead.serve.watchdog import Watchdog
from fairlead.settings.serve import ServeSettings
from fairlead.threads import CONTROL_THREADS
from fairlead.vectors import vector_files

CONTROL_STOPS_S: Final = 10
_RELAY_STOPS_AFTER_DRAIN_S: Final = 5


class Planes:
    """The relay and control of one instance. They share a link token that lives as long as the supervisor."""

    def __init__(self, settings: ServeSettings, directory: DataDirectory, log: LogSink) -> None:
        self._settings = settings
        self._directory = directory
        self._log = log
        self._socket = directory.control_socket()
        self._link_token = secrets.token_hex(32)
        self.setup_token = secrets.token_urlsafe(16)
        """Shows, to whoever sets the gateway up from elsewhere, that they can read what it printed."""

    @property
    def relay_stops_s(self) -> float:
        """Seconds that the relay may take to stop: the drain with a margin."""
        return self._settings.drain_ms / 1000 + _RELAY_STOPS_AFTER_DRAIN_S

    def watchdog(self, control: Child) -> Watchdog:
        """The watchdog of control."""
        silence_ms = self._settings.control_silence_ms
        return Watchdog(
            control, self._socket, self._log, silence_ms=silence_ms, grace_s=CONTROL_STOPS_S
        )

    def control_environment(self) -> dict[str, str]:
        config = self._settings.control_config(
            link_token=self._link_token,
            control_socket=self._socket,
            setup_token=self.setup_token,
        )
        # Polars reads this when it is first imported.
        return child_environment(
            FAIRLEAD_CONTROL_CONFIG=json.dumps(config), POLARS_MAX_THREADS=str(CONTROL_THREADS)
        )

    def control(self) -> Child:
        arguments = ["--socket", str(self._socket), "--kill-timeout-s", str(CONTROL_STOPS_S - 1)]
        return self._child("control", arguments, self.control_environment())

    def relay(self, address: Address, secret_key: bytes) -> Child:
        config = self._settings.relay_config(
            link_token=self._link_token,
            control_socket=self._socket,
            secret_key=secret_key,
            version=__version__,
            vectors=vector_files(),
        )
        if self._settings.front == "native":
            listener = self._settings.listener_config(address.host)
            environment = child_environment(
                FAIRLEAD_RELAY_CONFIG=json.dumps(config),
                FAIRLEAD_LISTENER_CONFIG=json.dumps(listener),
            )
            return self._child("relay", ["--front", "native"], environment)
        arguments = ["--host", address.host, "--port", str(address.port)]
        arguments += ["--max-open-streams", str(self._settings.max_open_streams)]
        # Granian kills its worker just before the supervisor would kill granian.
        arguments += ["--kill-timeout-s", str(math.ceil(self.relay_stops_s) - 1)]
        for flag, path in _tls(self._settings):
            arguments += [flag, str(path)]
        environment = child_environment(FAIRLEAD_RELAY_CONFIG=json.dumps(config))
        return self._child("relay", arguments, environment)

    def _child(self, name: str, arguments: list[str], environment: dict[str, str]) -> Child:
        return Child(name, arguments, environment, self._log, keep_open=[self._directory.lock_fd])


def _tls(settings: ServeSettings) -> list[tuple[str, Path]]:
    if settings.tls_certificate is None or settings.tls_key is None:
        return []
    return [("--tls-certificate", settings.tls_certificate), ("--tls-key", settings.tls_key)]
