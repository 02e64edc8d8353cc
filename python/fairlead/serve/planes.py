"""The planes, and the process that starts coding tools, as child processes: command lines and environment."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Final

from fairlead.process.threads import CONTROL_THREADS
from fairlead.serve.child import Child
from fairlead.serve.directory import DataDirectory
from fairlead.serve.environment import child_environment
from fairlead.serve.instance import Instance
from fairlead.serve.log import LogSink
from fairlead.serve.port import Address, free_port
from fairlead.serve.watchdog import Watchdog

CONTROL_STOPS_S: Final = 10
_RELAY_STOPS_AFTER_DRAIN_S: Final = 5


class Planes:
    """The relay and control of one instance. They share a link token that lives as long as the supervisor."""

    def __init__(self, instance: Instance, directory: DataDirectory, log: LogSink) -> None:
        self._instance = instance
        self._directory = directory
        self._log = log
        self._socket = directory.control_socket()
        # A relay shows the node token to controls elsewhere.
        tunnel = instance.tunnel if instance.role == "relay" else None
        self._link_token = secrets.token_hex(32) if tunnel is None else tunnel["token"]
        self.setup_token = secrets.token_urlsafe(16)
        """Shows, to whoever sets the gateway up from elsewhere, that they can read what it printed."""
        self._acp_port = free_port()
        self._acp_token = secrets.token_hex(32)

    @property
    def relay_stops_s(self) -> float:
        """Seconds that the relay may take to stop: the drain with a margin."""
        return self._instance.drain_ms / 1000 + _RELAY_STOPS_AFTER_DRAIN_S

    def watchdog(self, control: Child) -> Watchdog:
        """The watchdog of control."""
        silence_ms = self._instance.control_silence_ms
        return Watchdog(control, self._socket, self._log, silence_ms=silence_ms)

    def control_environment(self) -> dict[str, str]:
        config = self._instance.control | {
            "link_token": self._link_token,
            "control_socket": str(self._socket),
            "setup_token": self.setup_token,
        }
        if self._instance.acp is not None:
            config["acp_url"] = f"http://127.0.0.1:{self._acp_port}/v1"
            config["acp_token"] = self._acp_token
        # Polars reads this when it is first imported.
        return child_environment(
            FAIRLEAD_CONTROL_CONFIG=json.dumps(config), POLARS_MAX_THREADS=str(CONTROL_THREADS)
        )

    def control(self) -> Child:
        return self._child("control", ["--socket", str(self._socket)], self.control_environment())

    def tunnel(self) -> Child | None:
        """The process that connects this node to those of the other role; None where it is both."""
        if self._instance.tunnel is None:
            return None
        environment = child_environment(FAIRLEAD_TUNNEL_CONFIG=json.dumps(self._instance.tunnel))
        return self._child("tunnel", ["--socket", str(self._socket)], environment)

    def acp(self) -> Child | None:
        """The process that starts coding tools; None where none may be started."""
        if self._instance.acp is None:
            return None
        config = self._instance.acp | {"token": self._acp_token}
        environment = child_environment(FAIRLEAD_ACP_CONFIG=json.dumps(config))
        return self._child("acp", ["--port", str(self._acp_port)], environment)

    def relays(self, address: Address, secret_key: bytes) -> list[Child]:
        """The relay workers. All listen on the one address, and the kernel spreads connections over them."""
        if self._instance.workers == 1:
            return [self._relay("relay", address, secret_key)]
        return [
            self._relay(f"relay-{number}", address, secret_key)
            for number in range(1, self._instance.workers + 1)
        ]

    def _relay(self, name: str, address: Address, secret_key: bytes) -> Child:
        config = self._instance.relay | {
            "link_token": self._link_token,
            "control_socket": str(self._socket),
            "secret_key": base64.b64encode(secret_key).decode(),
            "other_secret_key": other.strip()
            if (other := self._instance.other_secret_key)
            else None,
        }
        if self._instance.front == "native":
            listener = self._instance.listener | {"host": address.host}
            environment = child_environment(
                FAIRLEAD_RELAY_CONFIG=json.dumps(config),
                FAIRLEAD_LISTENER_CONFIG=json.dumps(listener),
            )
            return self._child(name, ["--front", "native"], environment, plane="relay")
        arguments = ["--host", address.host, "--port", str(address.port)]
        arguments += ["--max-open-streams", str(self._instance.max_open_streams)]
        if self._instance.tls_certificate is not None and self._instance.tls_key is not None:
            arguments += ["--tls-certificate", self._instance.tls_certificate]
            arguments += ["--tls-key", self._instance.tls_key]
        environment = child_environment(FAIRLEAD_RELAY_CONFIG=json.dumps(config))
        return self._child(name, arguments, environment, plane="relay")

    def _child(
        self,
        name: str,
        arguments: list[str],
        environment: dict[str, str],
        *,
        plane: str | None = None,
    ) -> Child:
        descriptors = [self._directory.lock_fd]
        return Child(name, arguments, environment, self._log, keep_open=descriptors, plane=plane)
