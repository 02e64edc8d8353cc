"""Frames that break the protocol of WebSockets: the connection ends, and everybody else is served."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterator

import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.prometheus import read_metrics
from tests.support.upstream import SSE_HEAD, STALL, Gate, chunk, completion, delta, reply

pytestmark = pytest.mark.both_fronts

TEXT, PING, CLOSE = 0x1, 0x9, 0x8
FIN = 0x80


def frame(
    first: int, payload: bytes = b"", *, masked: bool = True, size: int | None = None
) -> bytes:
    """One frame with this first byte; `size` is what it says of its length, where that is not true."""
    length = len(payload) if size is None else size
    head = bytes([first])
    mark = 0x80 if masked else 0
    if length < 126:
        head += bytes([mark | length])
    elif length < 65_536:
        head += bytes([mark | 126]) + struct.pack(">H", length)
    else:
        head += bytes([mark | 127]) + struct.pack(">Q", length)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


@contextlib.contextmanager
def opened(gateway: Gateway, *, body: bytes = b"") -> Iterator[socket.socket]:
    """A connection after its handshake; `body` follows the head of the request."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=20) as raw:
        key = base64.b64encode(os.urandom(16)).decode()
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        raw.sendall(
            (
                f"GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nConnection: Upgrade\r\n"
                f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                f"Authorization: Bearer {gateway.key}\r\n{length}\r\n"
            ).encode()
            + body
        )
        yield raw


def head_of(raw: socket.socket) -> bytes:
    told = b""
    while b"\r\n\r\n" not in told:
        piece = raw.recv(1)
        if not piece:
            break
        told += piece
    return told


def one_frame(raw: socket.socket) -> tuple[int, bytes]:
    """Opcode and payload of the next frame. `ConnectionError` where the connection ends without one."""

    def exactly(count: int) -> bytes:
        told = b""
        while len(told) < count:
            piece = raw.recv(count - len(told))
            if not piece:
                raise ConnectionError("the connection ended")
            told += piece
        return told

    first, size = exactly(2)
    length = size & 0x7F
    if length == 126:
        (length,) = struct.unpack(">H", exactly(2))
    elif length == 127:
        (length,) = struct.unpack(">Q", exactly(8))
    return first & 0x0F, exactly(length)


def is_served(gateway: Gateway) -> bool:
    """A connection of somebody else."""
    with opened(gateway) as raw:
        assert b" 101 " in head_of(raw)
        opcode, payload = one_frame(raw)
        return opcode == TEXT and json.loads(payload)["type"] == "session.ready"


BROKEN = {
    "a control frame in pieces": frame(PING, b"a"),
    "a control frame that is too long": frame(FIN | PING, b"a" * 126),
    "bytes that are no UTF-8": frame(FIN | TEXT, b"\xff\xfe{}"),
    "a kind that is not known": frame(FIN | 0x3, b"a"),
    "a reserved bit": frame(FIN | 0x40 | TEXT, b"{}"),
    "a frame without a mask": frame(FIN | TEXT, b"{}", masked=False),
    "a piece of nothing": frame(FIN | 0x0, b"a"),
    "a message that says it has a terabyte": frame(FIN | TEXT, b"{", size=1 << 40),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_frame_ends_its_connection_alone(gateway: Gateway, data: bytes) -> None:
    with opened(gateway) as raw:
        assert b" 101 " in head_of(raw)
        assert one_frame(raw)[0] == TEXT
        raw.sendall(data)
        with contextlib.suppress(ConnectionError):
            opcode, payload = one_frame(raw)
            assert opcode == CLOSE, payload
            if payload:
                (code,) = struct.unpack(">H", payload[:2])
                assert code in (1002, 1007, 1009), code
            # Whoever was told to go is not waited for.
            raw.sendall(frame(FIN | CLOSE, payload[:2]))
            assert raw.recv(1) == b""
    assert is_served(gateway)


def test_a_flood_of_pings_holds_nobody_up(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(completion("hello")))
    with opened(gateway) as raw:
        assert b" 101 " in head_of(raw)
        assert one_frame(raw)[0] == TEXT
        raw.sendall(frame(FIN | PING, b"x" * 100) * 2_000)
        ask = {"type": "request", "id": "a", "payload": lane.body()}
        raw.sendall(frame(FIN | TEXT, json.dumps(ask).encode()))
        kinds = []
        while "response.completed" not in kinds:
            opcode, payload = one_frame(raw)
            if opcode == TEXT:
                kinds.append(json.loads(payload)["type"])
    assert "response.output" in kinds
    assert is_served(gateway)


def test_a_message_in_pieces_is_one(gateway: Gateway, lane: Lane) -> None:
    """With a ping between them, as the protocol allows."""
    lane.upstream.script(reply(completion("hello")))
    said = json.dumps({"type": "request", "id": "é", "payload": lane.body()}).encode()
    with opened(gateway) as raw:
        assert b" 101 " in head_of(raw)
        assert one_frame(raw)[0] == TEXT
        raw.sendall(frame(TEXT, said[:9]) + frame(FIN | PING) + frame(FIN | 0x0, said[9:]))
        kinds = []
        while "response.completed" not in kinds:
            opcode, payload = one_frame(raw)
            if opcode == TEXT:
                kinds.append(json.loads(payload)["type"])
    assert kinds[0] == "response.start"


def test_a_connection_that_breaks_mid_stream_ends_the_call(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script([SSE_HEAD, chunk(delta("one")), STALL])
    with opened(gateway) as raw:
        assert b" 101 " in head_of(raw)
        assert one_frame(raw)[0] == TEXT
        ask = {"type": "request", "id": "a", "payload": lane.body(stream=True)}
        raw.sendall(frame(FIN | TEXT, json.dumps(ask).encode()))
        kinds: list[str] = []
        while "response.chunk" not in kinds:
            opcode, payload = one_frame(raw)
            if opcode == TEXT:
                kinds.append(json.loads(payload)["type"])
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    eventually(lambda: lane.upstream.last.gone_at, "the provider's call ends", within_s=10)


def test_an_upgrade_with_a_body_is_no_request_more(gateway: Gateway) -> None:
    """What follows the head is never taken for another request."""
    smuggled = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
    with opened(gateway, body=smuggled) as raw:
        told = head_of(raw)
        status = told.split(b" ", 2)[1] if told else b""
        assert status in (b"101", b"400", b"413", b""), told
        raw.settimeout(1)
        with contextlib.suppress(TimeoutError, ConnectionError):
            assert b"HTTP/1.1 200" not in raw.recv(65_536)
    assert is_served(gateway)


def buffered_bytes(gateway: Gateway) -> float:
    answer = gateway.client().get("/metrics")
    assert answer.status_code == 200, answer.text
    return read_metrics(answer.text)["fairlead_buffered_body_bytes"].value()


def test_payloads_count_as_bodies_until_they_are_answered(gateway: Gateway, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script([gate, *reply(completion("hello"))])
    payload = lane.body(messages=[{"role": "user", "content": "x" * 8_000_000}])
    with opened(gateway) as raw:
        assert b" 101 " in head_of(raw)
        assert one_frame(raw)[0] == TEXT
        ask = {"type": "request", "id": "a", "payload": payload}
        raw.sendall(frame(FIN | TEXT, json.dumps(ask).encode()))
        eventually(lambda: buffered_bytes(gateway) >= 8_000_000, "the payload is counted")
        gate.open()
        kinds = []
        while "response.completed" not in kinds:
            opcode, told = one_frame(raw)
            if opcode == TEXT:
                kinds.append(json.loads(told)["type"])
        eventually(lambda: buffered_bytes(gateway) < 1_000_000, "the payload is counted no more")


@pytest.mark.front_only("native", reason="granian puts messages together before it hands them over")
def test_a_message_that_has_not_come_whole_counts_as_a_body(gateway: Gateway) -> None:
    with opened(gateway) as raw:
        assert b" 101 " in head_of(raw)
        assert one_frame(raw)[0] == TEXT
        for number in range(8):
            raw.sendall(frame(TEXT if number == 0 else 0, b"x" * 1_000_000))
        eventually(lambda: buffered_bytes(gateway) >= 7_000_000, "the message is counted")
        raw.sendall(frame(FIN, b"x"))
        eventually(lambda: buffered_bytes(gateway) < 1_000_000, "the message is counted no more")
    with opened(gateway) as raw:
        assert b" 101 " in head_of(raw)
        raw.sendall(frame(TEXT, b"x" * 4_000_000))
        eventually(lambda: buffered_bytes(gateway) >= 3_000_000, "the message is counted")
    eventually(lambda: buffered_bytes(gateway) < 1_000_000, "who leaves holds nothing")
