"""S18: WebSocket callers that break the rules of frames, before the engine's own listener (RFC 6455)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest

from tests.support.processes import Gateway, start_gateway
from tests.support.raw import Closed, RawClient

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
FIN = 0x80


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with start_gateway(tmp_path_factory.mktemp("frames"), FAIRLEAD_FRONT="native") as running:
        yield running
        running.assert_keeps_secrets()


def frame(
    first: int, payload: bytes = b"", *, masked: bool = True, length: int | None = None
) -> bytes:
    """A frame; `first` is its first byte whole, `length` what it claims in place of the truth."""
    claimed = len(payload) if length is None else length
    bit = 0x80 if masked else 0
    if claimed < 126:
        head = bytes([first, bit | claimed])
    elif claimed < 65536:
        head = bytes([first, bit | 126]) + struct.pack(">H", claimed)
    else:
        head = bytes([first, bit | 127]) + struct.pack(">Q", claimed)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def opened(gateway: Gateway) -> RawClient:
    """A connection of frames that has said that it is ready."""
    client = RawClient(gateway.port)
    headers = [
        ("Connection", "keep-alive, Upgrade"), ("Upgrade", "WebSocket"), gateway.auth,
        ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]  # fmt: skip
    client.request("GET", "/v1/ws", headers)
    head = client._until(b"\r\n\r\n").decode()
    assert head.startswith("HTTP/1.1 101 ")
    assert "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head  # RFC 6455, 1.3
    kind, payload = heard(client)
    assert (kind, b"session.ready" in payload) == (TEXT, True)
    return client


def heard(client: RawClient) -> tuple[int, bytes]:
    """The next frame of the gateway's: whole, and never masked."""
    first, second = client.exactly(2)
    assert first & 0x70 == 0
    assert second & 0x80 == 0
    length = second
    if second == 126:
        (length,) = struct.unpack(">H", client.exactly(2))
    elif second == 127:
        (length,) = struct.unpack(">Q", client.exactly(8))
    return first & 0x0F, client.exactly(length)


def closed_with(client: RawClient) -> int | None:
    """The code that the gateway closes with, or None where it ends the connection without a word."""
    try:
        while True:
            kind, payload = heard(client)
            if kind == CLOSE:
                return int.from_bytes(payload[:2], "big") if payload else 1005
    except Closed:
        return None


PING_TEXT = b'{"type":"ping","id":"a"}'


def test_a_message_in_pieces_is_one(native: Gateway) -> None:
    """Continuation frames, an empty one among them, and a ping in between, which is answered at once."""
    with opened(native) as client:
        client.send(frame(TEXT, PING_TEXT[:5]) + frame(0, b"") + frame(FIN | PING, b"now"))
        client.send(frame(0, PING_TEXT[5:9]) + frame(FIN, PING_TEXT[9:]))
        assert heard(client) == (PONG, b"now")
        kind, payload = heard(client)
        assert (kind, b'"pong"' in payload) == (TEXT, True)


def test_bytes_that_trickle_are_a_frame(native: Gateway) -> None:
    with opened(native) as client:
        for byte in frame(FIN | TEXT, PING_TEXT):
            client.send(bytes([byte]))
        assert b'"pong"' in heard(client)[1]


@pytest.mark.parametrize("size", (0, 125, 126, 127, 128, 65_535, 65_536, 65_537))
def test_messages_of_every_length_are_heard(native: Gateway, size: int) -> None:
    """Each form of a length; what is no JSON is told so, and the connection goes on."""
    with opened(native) as client:
        client.send(frame(FIN | TEXT, b"x" * size))
        assert b"invalid_json" in heard(client)[1]
        client.send(frame(FIN | TEXT, PING_TEXT))
        assert b'"pong"' in heard(client)[1]


def test_bytes_are_told_to_be_texts(native: Gateway) -> None:
    with opened(native) as client:
        client.send(frame(FIN | BINARY, b"\x00\xff"))
        assert b"not_text" in heard(client)[1]


def test_an_unasked_pong_is_ignored(native: Gateway) -> None:
    with opened(native) as client:
        client.send(frame(FIN | PONG, b"why") + frame(FIN | TEXT, PING_TEXT))
        assert b'"pong"' in heard(client)[1]


def test_a_close_is_answered_in_kind(native: Gateway) -> None:
    with opened(native) as client:
        client.send(frame(FIN | CLOSE, struct.pack(">H", 1000) + b"bye"))
        assert closed_with(client) == 1000
        assert client.until_closed().kind == "closed"


def test_an_empty_close_is_answered(native: Gateway) -> None:
    with opened(native) as client:
        client.send(frame(FIN | CLOSE))
        assert closed_with(client) in {1005, 1000}


BROKEN = {
    "no mask": (frame(FIN | TEXT, PING_TEXT, masked=False), {1002}),
    "a reserved bit": (frame(FIN | 0x40 | TEXT, PING_TEXT), {1002}),
    "a reserved opcode": (frame(FIN | 0x3, b"x"), {1002}),
    "a reserved control opcode": (frame(FIN | 0xB, b"x"), {1002}),
    "a ping in pieces": (frame(PING, b"x"), {1002}),
    "a long ping": (frame(FIN | PING, b"x" * 126), {1002}),
    "a close in pieces": (frame(CLOSE, b""), {1002}),
    "nothing to continue": (frame(FIN, b"x"), {1002}),
    "a message inside another": (frame(TEXT, b"x") + frame(FIN | TEXT, b"y"), {1002}),
    "a close of one byte": (frame(FIN | CLOSE, b"\x03"), {1002}),
    "a close with no such code": (frame(FIN | CLOSE, struct.pack(">H", 999)), {1002}),
    "a close with a code that is not sent": (frame(FIN | CLOSE, struct.pack(">H", 1006)), {1002}),
    "a close that is no text": (
        frame(FIN | CLOSE, struct.pack(">H", 1000) + b"\xff"),
        {1002, 1007},
    ),
    "no UTF-8": (frame(FIN | TEXT, b"\xc0\xaf"), {1007}),
    "half a character": (frame(FIN | TEXT, "é".encode()[:1]), {1007}),
    "a surrogate": (frame(FIN | TEXT, b"\xed\xa0\x80"), {1007}),
    "a length beyond all": (frame(FIN | TEXT, b"", length=2**40), {1009}),
    "a length with its sign": (frame(FIN | TEXT, b"", length=2**63), {1002, 1009}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_frames_end_the_connection(native: Gateway, name: str) -> None:
    """With the code that RFC 6455 has for it, or without a word; never with an answer to what was broken."""
    data, codes = BROKEN[name]
    with opened(native) as client:
        client.send(data)
        assert closed_with(client) in codes | {None}
        assert client.until_closed().kind in {"closed", "reset"}
    with opened(native) as other:
        other.send(frame(FIN | TEXT, PING_TEXT))
        assert b'"pong"' in heard(other)[1]


def test_a_flood_of_pings_is_answered_or_ended(native: Gateway) -> None:
    """Nothing piles up for a caller that does not read its pongs."""
    before = native.relay_worker.rss_bytes
    with opened(native) as client:
        client.socket.settimeout(3)
        try:
            for _ in range(200):
                client.send(frame(FIN | PING, b"x" * 125) * 100)
        except OSError:
            pass  # held up, or sent away
        with opened(native) as other:
            other.send(frame(FIN | TEXT, PING_TEXT))
            assert b'"pong"' in heard(other)[1]
    assert native.relay_worker.rss_bytes - before < 20 * 1024 * 1024


HANDSHAKES = {
    "no key": ([("Sec-WebSocket-Version", "13")], 400),
    "another version": (
        [("Sec-WebSocket-Version", "8"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")], 400,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HANDSHAKES)
def test_half_a_handshake_is_refused(native: Gateway, name: str) -> None:
    headers, status = HANDSHAKES[name]
    with RawClient(native.port) as client:
        upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket"), native.auth]
        client.request("GET", "/v1/ws", [*upgrade, *headers])
        answer = client.response()
        assert answer.status == status
        assert answer.header("sec-websocket-version") == "13"
