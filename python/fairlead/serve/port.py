"""The port: resolved, probed, and kept ours while the relay is away."""

from __future__ import annotations

import errno
import socket
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from fairlead.errors import Refusal


@dataclass(frozen=True, slots=True)
class Address:
    """Where the relay listens: `host` is a numeric address."""

    host: str
    port: int

    @property
    def reachable(self) -> str:
        """`host:port` as a client on this machine writes it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class ClaimedPort:
    """A port that nobody else can take until the context is left.

    The socket is bound and never listens, so it gets no connection. It is bound alone, which fails
    when anybody has the port, and shares the port afterwards (Linux) with the relay's workers,
    which bind it with SO_REUSEPORT: while they are away, the port is not free for others.
    """

    def __init__(self, host: str, port: int) -> None:
        """Raises `Refusal` when the host has no address here or the port is taken."""
        family, numeric = _resolve(host, port)
        self.address = Address(numeric, port)
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            # Connections of an earlier start that linger are no reason to refuse.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((numeric, port))
        except OSError as error:
            self._socket.close()
            raise Refusal(_why(host, port, error)) from None
        if sys.platform == "linux":
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        else:
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()


def free_port() -> int:
    """A loopback port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Refusal(
            f"--host (FAIRLEAD_HOST): {host} is no address of this machine: "
            "name one, such as 127.0.0.1."
        ) from None
    # A name such as localhost may have both; what most clients try first is IPv4.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, str(address[0])


def _why(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} on {host} is in use by another program: "
                "stop it, or name another with --port (FAIRLEAD_PORT)."
            )
        case errno.EADDRNOTAVAIL:
            return f"--host (FAIRLEAD_HOST): {host} is no address of this machine."
        case errno.EACCES:
            return f"port {port} is for privileged users: name one above 1023 with --port."
        case _:
            return f"cannot listen on {host} port {port}: {error.strerror}."
