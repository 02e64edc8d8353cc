"""A client on a raw socket: sends exactly the bytes it is given, reads answers one by one, as slowly as it likes."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self


class Closed(Exception):
    """The other side ended the connection; `kind` is `closed` (FIN) or `reset` (RST)."""

    def __init__(self, kind: str, rest: bytes) -> None:
        super().__init__(f"the connection was {kind} with {len(rest)} unread bytes: {rest[:200]!r}")
        self.kind = kind
        self.rest = rest


@dataclass
class RawResponse:
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        """The header's value, or None. Fails when it stands twice."""
        values = self.all(name)
        assert len(values) < 2, f"{name} stands {len(values)} times: {values}"
        return values[0] if values else None

    def json(self) -> Any:
        return json.loads(self.body)


class RawClient:
    """One connection. A context manager. Every wait ends at `timeout_s` with `TimeoutError`."""

    def __init__(
        self,
        port: int,
        *,
        host: str = "127.0.0.1",
        timeout_s: float = 10.0,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes is not None:  # must be set before connecting to bound the window
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(timeout_s)
        try:
            self.socket.connect((host, port))
        except OSError:
            self.socket.close()
            raise
        self._input = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def close(self) -> None:
        """Leaves in good order (FIN)."""
        self.socket.close()

    def reset(self) -> None:
        """Leaves with RST, as a killed process with unread data does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # --- sending

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def request(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | None = None,
    ) -> None:
        """A well-formed request; `Host` and `Content-Length` are added."""
        self.send(request_bytes(method, target, headers, body))

    # --- reading

    def head(self) -> RawResponse:
        """Status and headers of the next answer that is not a 1xx. Raises `Closed` when there is none."""
        while True:
            block = self._until(b"\r\n\r\n").decode("latin-1")
            start, *lines = block.split("\r\n")
            version, status, reason = [*start.split(" ", 2), ""][:3]
            assert version in {"HTTP/1.1", "HTTP/1.0"}, f"not an answer: {start!r}"
            headers = [
                (name, value.strip()) for name, _, value in (line.partition(":") for line in lines)
            ]
            answer = RawResponse(int(status), reason, headers)
            if answer.status >= 200:
                return answer

    def response(self, *, bodyless: bool = False) -> RawResponse:
        """The next answer, whole. `bodyless` for an answer to HEAD."""
        answer = self.head()
        if bodyless or answer.status in {204, 304}:
            return answer
        if "chunked" in (answer.header("transfer-encoding") or ""):
            answer.body = b"".join(iter(self.chunk, None))
        elif (length := answer.header("content-length")) is not None:
            answer.body = self.exactly(int(length))
        else:
            answer.body = self.until_closed().rest
        return answer

    def chunk(self) -> bytes | None:
        """The next piece of a chunked body, or None after the last."""
        size = int(self._until(b"\r\n").split(b";")[0], 16)
        data = self.exactly(size + 2)
        return data[:-2] if size else None

    def exactly(self, size: int) -> bytes:
        while len(self._input) < size:
            self._more()
        found = bytes(self._input[:size])
        del self._input[:size]
        return found

    def some(self, most: int) -> bytes:
        """At least one byte and at most so many, as they come."""
        if not self._input:
            self._more()
        found = bytes(self._input[:most])
        del self._input[:most]
        return found

    def until_closed(self) -> Closed:
        """Reads until the other side ends the connection: how it did, and what it said before."""
        while True:
            try:
                self._more()
            except Closed as closed:
                return closed

    def block(self) -> bytes:
        """The next head as it came, up to its empty line; a 1xx too."""
        return self._until(b"\r\n\r\n")

    def body_until(self, mark: bytes) -> bytes:
        """Chunked body bytes up to and with the chunk in which `mark` is complete."""
        got = b""
        while mark not in got:
            piece = self.chunk()
            assert piece is not None, f"the body ended without {mark!r}: {got!r}"
            got += piece
        return got

    def _until(self, mark: bytes) -> bytes:
        while (at := self._input.find(mark)) < 0:
            self._more()
        found = bytes(self._input[:at])
        del self._input[: at + len(mark)]
        return found

    def _more(self) -> None:
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            raise Closed("reset", bytes(self._input)) from None
        if not data:
            raise Closed("closed", bytes(self._input))
        self._input += data


def request_bytes(
    method: str,
    target: str,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
) -> bytes:
    """A well-formed HTTP/1.1 request; `Host` and, with a body, its type and length are added where missing."""
    lines = list(headers)
    names = {name.lower() for name, _ in lines}
    if "host" not in names:
        lines.insert(0, ("Host", "localhost"))
    if body is not None:
        if "content-type" not in names:
            lines.append(("Content-Type", "application/json"))
        if not names & {"content-length", "transfer-encoding"}:
            lines.append(("Content-Length", str(len(body))))
    text = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"{method} {target} HTTP/1.1\r\n{text}\r\n".encode("latin-1") + (body or b"")


def read_slowly(client: RawClient, pieces: int, piece_bytes: int, every_s: float) -> int:
    """Takes `pieces` small reads with a pause after each, as a bad link would; the bytes taken."""
    taken = 0
    for _ in range(pieces):
        taken += len(client.exactly(piece_bytes))
        time.sleep(every_s)
    return taken


def answers_to(port: int, data: bytes, *, quiet_s: float = 0.3) -> tuple[list[RawResponse], bool]:
    """Everything that is answered to these bytes until `quiet_s` of silence, and whether the connection was ended."""
    found: list[RawResponse] = []
    with RawClient(port, timeout_s=3) as client:
        with contextlib.suppress(ConnectionError):
            client.send(data)
        while True:
            try:
                found.append(client.response())
            except TimeoutError:
                return found, False
            except Closed:
                return found, True
            client.socket.settimeout(quiet_s)
