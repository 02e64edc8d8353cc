"""WebSocket frames by hand (RFC 6455): for saying what no client library would say."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from tests.support.raw import Closed, RawClient, RawResponse, request_bytes

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MASK: Final = b"\x37\xfa\x21\x3d"


@dataclass(frozen=True)
class Frame:
    opcode: int
    payload: bytes = b""
    is_final: bool = True

    @property
    def code(self) -> int | None:
        """A close's code; None where it has none."""
        return struct.unpack(">H", self.payload[:2])[0] if self.payload else None


def frame_bytes(
    opcode: int,
    payload: bytes = b"",
    *,
    is_final: bool = True,
    reserved: int = 0,
    is_masked: bool = True,
    length: int | None = None,
    length_bytes: int | None = None,
) -> bytes:
    """One frame of a client's. `length` is announced in place of the payload's own, in `length_bytes` (0, 2, 8)."""
    size = len(payload) if length is None else length
    if length_bytes is None:
        length_bytes = 0 if size < 126 else 2 if size < 65536 else 8
    short = {0: size, 2: 126, 8: 127}[length_bytes]
    head = bytes([is_final << 7 | reserved << 4 | opcode, is_masked << 7 | short])
    head += {0: b"", 2: struct.pack(">H", size & 0xFFFF), 8: struct.pack(">Q", size)}[length_bytes]
    return head + (_MASK + masked(payload) if is_masked else payload)


def masked(payload: bytes) -> bytes:
    mask = int.from_bytes((_MASK * (len(payload) // 4 + 1))[: len(payload)])
    return (int.from_bytes(payload) ^ mask).to_bytes(len(payload))


def close_bytes(code: int | None = None, reason: bytes = b"") -> bytes:
    return frame_bytes(CLOSE, b"" if code is None else struct.pack(">H", code) + reason)


def handshake_bytes(
    path: str, auth: tuple[str, str], *headers: tuple[str, str], leave_out: str = ""
) -> tuple[bytes, str]:
    """A client's opening, and the `Sec-WebSocket-Accept` that must come back.

    `headers` stand in for those of their name.
    """
    key = base64.b64encode(os.urandom(16)).decode()
    given = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        **dict([auth, *headers]),
    }
    given.pop(leave_out, None)
    digest = hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()
    return request_bytes("GET", path, list(given.items())), base64.b64encode(digest).decode()


class RawSocket:
    """One WebSocket, opened. A context manager."""

    def __init__(
        self, port: int, auth: tuple[str, str], path: str = "/v1/ws", ahead: bytes = b""
    ) -> None:
        self._client = RawClient(port, timeout_s=20)
        opening, accept = handshake_bytes(path, auth)
        self._client.send(opening + ahead)
        self.answer: RawResponse = _switched(self._client)
        assert self.answer.header("sec-websocket-accept") == accept

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()

    def send(self, data: bytes) -> None:
        """What the other side has ended is told when reading."""
        with contextlib.suppress(ConnectionError):
            self._client.send(data)

    def frame(self) -> Frame:
        """The next frame. Raises `Closed` when there is none, fails where it is masked or has reserved bits."""
        first, second = self._client.exactly(2)
        assert not first & 0x70, "reserved bits"
        assert not second & 0x80, "a server masks nothing"
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self._client.exactly(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._client.exactly(8))
        return Frame(first & 0x0F, self._client.exactly(size), bool(first & 0x80))

    def frames(self) -> Iterator[Frame]:
        """Until the other side ends the connection, in good order or not."""
        with contextlib.suppress(Closed):
            while True:
                yield self.frame()


def _switched(client: RawClient) -> RawResponse:
    start, *lines = client.block().decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    answer = RawResponse(
        int(start.split(" ")[1]), start, [(name, value.strip()) for name, _, value in pairs]
    )
    assert answer.status == 101, start
    assert (answer.header("upgrade") or "").lower() == "websocket"
    return answer
