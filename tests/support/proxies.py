"""Outbound proxies on loopback: one of ours that remembers where it connected to, and Debian's own programs."""

from __future__ import annotations

import base64
import contextlib
import shutil
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.polling import eventually
from tests.support.process import free_port

USERNAME = "proxy-user"
PASSWORD = "proxy-password-canary"


@dataclass(frozen=True)
class RunningProxy:
    """Where a proxy listens, and what the gateway is told of it."""

    type: str
    port: int

    def fields(self, **more: Any) -> dict[str, Any]:
        """As `/api/settings/proxy` takes it."""
        login = {"username": USERNAME, "password": PASSWORD}
        return {"type": self.type, "host": "127.0.0.1", "port": self.port, **login, **more}


class _Tunnel(socketserver.BaseRequestHandler):
    """One caller: the words of CONNECT or SOCKS5, then bytes both ways."""

    server: _Server

    def handle(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            first = self._read(1)
            place = self._socks5() if first == b"\x05" else self._connect(first)
            if place is None:
                return
            self.server.proxy.tunnels.append(place)
            with socket.create_connection(place, timeout=10) as there:
                self.request.sendall(self._welcome)
                back = threading.Thread(target=_pump, args=(there, self.request), daemon=True)
                back.start()
                _pump(self.request, there)
                back.join(10)

    def _connect(self, first: bytes) -> tuple[str, int] | None:
        head = first
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        line, *lines = head.decode().split("\r\n")
        login = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        if self.server.proxy.status is not None:
            self.request.sendall(f"HTTP/1.1 {self.server.proxy.status} No\r\n\r\n".encode())
            return None
        if f"Proxy-Authorization: Basic {login}" not in lines:
            self.request.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return None
        self._welcome = b"HTTP/1.1 200 Connection established\r\n\r\n"
        host, _, port = line.split(" ")[1].rpartition(":")
        return host.strip("[]"), int(port)

    def _socks5(self) -> tuple[str, int] | None:
        self._read(self._read(1)[0])
        self.request.sendall(b"\x05\x02")
        self._read(1)
        username = self._read(self._read(1)[0]).decode()
        password = self._read(self._read(1)[0]).decode()
        is_known = (username, password) == (USERNAME, PASSWORD)
        self.request.sendall(b"\x01\x00" if is_known else b"\x01\x01")
        if not is_known:
            return None
        self._welcome = b"\x05\x00\x00\x01" + bytes(6)
        kind = self._read(4)[3]
        if kind == 3:
            host = self._read(self._read(1)[0]).decode()
        else:
            family = socket.AF_INET if kind == 1 else socket.AF_INET6
            host = socket.inet_ntop(family, self._read(4 if kind == 1 else 16))
        return host, int.from_bytes(self._read(2), "big")

    def _read(self, size: int) -> bytes:
        read = b""
        while len(read) < size:
            part = self.request.recv(size - len(read))
            if not part:
                raise EOFError
            read += part
        return read


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65_536):
            sink.sendall(part)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    proxy: RecordingProxy


class RecordingProxy:
    """A proxy that speaks CONNECT and SOCKS5, asks for the login, and keeps the places it connected to.

    With `status` set it answers that to every CONNECT.
    """

    def __init__(self, type: str = "http", port: int = 0) -> None:  # noqa: A002 - as the gateway calls it
        self._server = _Server(("127.0.0.1", port), _Tunnel)
        self._server.proxy = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self.running = RunningProxy(type, self._server.server_address[1])
        self.tunnels: list[tuple[str, int]] = []
        self.status: int | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@contextlib.contextmanager
def debian_proxy(name: str, directory: Path) -> Iterator[RunningProxy]:
    """`tinyproxy` (CONNECT) or `microsocks` (SOCKS5) with the login; skips where the program is missing."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    port = free_port()
    if name == "tinyproxy":
        config = directory / "tinyproxy.conf"
        config.write_text(
            f"Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\n"
            f'BasicAuth {USERNAME} {PASSWORD}\nLogFile "{directory / "tinyproxy.log"}"\n'
        )
        arguments = ["-d", "-c", str(config)]
    else:
        arguments = ["-i", "127.0.0.1", "-p", str(port), "-u", USERNAME, "-P", PASSWORD]
    process = subprocess.Popen(
        [program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        eventually(lambda: _listens(port), f"{name} listens")
        yield RunningProxy("http" if name == "tinyproxy" else "socks5", port)
    finally:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
