"""The listening port: resolved, probed, and reserved while the relay is down."""

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
    """The relay's listening address; `host` is an IP address."""

    host: str
    port: int

    @property
    def reachable(self) -> str:
        """`host:port` as a client on this machine writes it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class ClaimedPort:
    """A port reserved until the context is left.

    The socket is bound but never listens, so it gets no connections. It is bound exclusively first, which fails
    if the port is taken, and then shared with the relay's workers (SO_REUSEPORT, Linux), so that the port is
    never free for others while they restart.
    """

    def __init__(self, host: str, port: int) -> None:
        """Reserves the port. Raises `Refusal` when the host has no address here or the port is taken."""
        family, numeric = _resolve(host, port)
        self.address = Address(numeric, port)
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            # Lingering connections of an earlier start must not block the port.
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
    """A loopback port that is free now."""
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
    # A name such as localhost may have both families; most clients try IPv4 first.
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
