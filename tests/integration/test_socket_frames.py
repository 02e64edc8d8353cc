"""WebSockets frame by frame, in the manner of the Autobahn suite: what may be said, and how what may not is refused.

Every case runs over both fronts. granian does not say how a connection broke the protocol, so it is closed with 1002.
The engine's own listener closes with the code that RFC 6455 has for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.support.frames import (
    BINARY,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Frame,
    RawSocket,
    close_bytes,
    frame_bytes,
    handshake_bytes,
)
from tests.support.frames import CLOSE as CLOSES
from tests.support.gateway_pool import GatewayPool
from tests.support.processes import DEFAULTS, FRONTS, Gateway
from tests.support.raw import RawClient

KIB, MIB = 1024, 1024 * 1024
ASK = b'{"type":"ping","id":"p"}'
TOLD = {"type": "pong", "id": "p"}
END = close_bytes(1000)


@pytest.fixture(scope="module", params=FRONTS)
def gateway(request: pytest.FixtureRequest, gateway_pool: GatewayPool) -> Iterator[Gateway]:
    is_usual = request.param == DEFAULTS["FAIRLEAD_FRONT"]
    with gateway_pool.lease(**({} if is_usual else {"FAIRLEAD_FRONT": request.param})) as running:
        yield running


@pytest.fixture
def opened(gateway: Gateway) -> Iterator[RawSocket]:
    with RawSocket(gateway.port, gateway.auth) as socket:
        assert json.loads(socket.frame().payload)["type"] == "session.ready"
        yield socket


def padded(size: int) -> bytes:
    """A question of so many bytes: JSON may be followed by spaces."""
    return ASK.ljust(size)


def answers(socket: RawSocket, *data: bytes, count: int = 0) -> list[Frame]:
    """Everything that is said to these bytes and to a close behind them.

    The close is sent once `count` frames came: granian forgets what it has not sent yet when a close comes.
    """
    for piece in data:
        socket.send(piece)
    found = [socket.frame() for _ in range(count)]
    socket.send(END)
    return [*found, *socket.frames()]


def assert_answered(socket: RawSocket, *data: bytes, count: int = 1) -> None:
    """So many answers, then our close is answered, then nothing."""
    *told, last = answers(socket, *data, count=count)
    assert [json.loads(frame.payload) for frame in told] == [TOLD] * count
    assert (last.opcode, last.code) == (CLOSES, 1000)


def assert_refused(gateway: Gateway, frames: list[Frame], *codes: int) -> None:
    """Nothing is answered but a close with one of these codes, over granian with 1002. granian may leave in silence
    where bytes behind a fault reset the connection.
    """
    if gateway.front == "granian" and not frames:
        return
    assert [frame.opcode for frame in frames] == [CLOSES], frames
    allowed = codes if gateway.front == "native" else (*codes, 1000, 1002)
    assert frames[0].code in allowed, frames[0]


# -------------------------------------------------------------------------- 1: messages of every size


@pytest.mark.parametrize("size", (len(ASK), 125, 126, 127, 128, 65535, 65536, 300 * KIB))
def test_a_message_of_every_length_field_is_read(opened: RawSocket, size: int) -> None:
    assert_answered(opened, frame_bytes(TEXT, padded(size)))


def test_a_frame_may_come_byte_by_byte(opened: RawSocket) -> None:
    data = frame_bytes(TEXT, padded(130))
    assert_answered(opened, *(data[at : at + 1] for at in range(len(data))))


def test_many_frames_may_come_at_once(opened: RawSocket) -> None:
    assert_answered(opened, frame_bytes(TEXT, ASK) * 50, count=50)


def test_what_comes_with_the_opening_is_read(gateway: Gateway) -> None:
    """A caller need not wait for the 101 (nor do some), as long as it is one connection's bytes."""
    with RawSocket(gateway.port, gateway.auth, ahead=frame_bytes(TEXT, ASK)) as socket:
        assert json.loads(socket.frame().payload)["type"] == "session.ready"
        assert_answered(socket)


@pytest.mark.parametrize("payload", (b"", b"\x00\xff\xfe", bytes(200)))
def test_bytes_are_refused_in_words(opened: RawSocket, payload: bytes) -> None:
    """Binary frames are good frames; the conversation has no use for them and says so."""
    told, last = answers(opened, frame_bytes(BINARY, payload), count=1)
    assert json.loads(told.payload)["error"]["code"] == "not_text"
    assert (last.opcode, last.code) == (CLOSES, 1000)


# ------------------------------------------------------------------------------- 2: pings and pongs


@pytest.mark.parametrize("payload", (b"", b"Hello", bytes(range(125)), b"\xfe" * 125))
def test_a_ping_is_answered_with_its_payload(opened: RawSocket, payload: bytes) -> None:
    pong, last = answers(opened, frame_bytes(PING, payload))
    assert (pong.opcode, pong.payload) == (PONG, payload)
    assert last.code == 1000


def test_a_ping_is_answered_one_by_one(opened: RawSocket) -> None:
    for number in range(10):
        opened.send(frame_bytes(PING, b"%d" % number))
        assert opened.frame() == Frame(PONG, b"%d" % number)


def test_a_ping_may_come_byte_by_byte(opened: RawSocket) -> None:
    data = frame_bytes(PING, b"Hello")
    pong, _ = answers(opened, *(data[at : at + 1] for at in range(len(data))))
    assert pong == Frame(PONG, b"Hello")


@pytest.mark.parametrize("payload", (b"", b"nobody asked"))
def test_a_pong_that_nobody_asked_for_is_no_matter(opened: RawSocket, payload: bytes) -> None:
    assert_answered(opened, frame_bytes(PONG, payload), frame_bytes(TEXT, ASK))


@pytest.mark.parametrize("opcode", (PING, PONG, CLOSES))
def test_a_control_frame_has_at_most_125_bytes(
    gateway: Gateway, opened: RawSocket, opcode: int
) -> None:
    assert_refused(gateway, answers(opened, frame_bytes(opcode, b"\x03\xe8" + b"x" * 124)), 1002)


@pytest.mark.parametrize("opcode", (PING, PONG, CLOSES))
def test_a_control_frame_is_not_fragmented(
    gateway: Gateway, opened: RawSocket, opcode: int
) -> None:
    frames = answers(opened, frame_bytes(opcode, b"", is_final=False), frame_bytes(CONTINUATION))
    assert_refused(gateway, frames, 1002)


# -------------------------------------------------------------------- 3, 4: reserved bits and opcodes


@pytest.mark.parametrize("reserved", range(1, 8))
@pytest.mark.parametrize("opcode", (TEXT, BINARY, PING, CLOSES))
def test_reserved_bits_are_refused(
    gateway: Gateway, opened: RawSocket, opcode: int, reserved: int
) -> None:
    """No extension is spoken here, so no bit has a meaning."""
    payload = b"" if opcode == CLOSES else ASK
    assert_refused(gateway, answers(opened, frame_bytes(opcode, payload, reserved=reserved)), 1002)


@pytest.mark.parametrize("opcode", (3, 4, 5, 6, 7, 11, 12, 13, 14, 15))
@pytest.mark.parametrize("payload", (b"", b"Hello"), ids=("empty", "with bytes"))
def test_unknown_opcodes_are_refused(
    gateway: Gateway, opened: RawSocket, opcode: int, payload: bytes
) -> None:
    assert_refused(gateway, answers(opened, frame_bytes(opcode, payload)), 1002)


# ---------------------------------------------------------------------------------- 5: fragments


def fragments(payload: bytes, sizes: int, between: bytes = b"") -> list[bytes]:
    """One text in pieces of `sizes` bytes, with `between` behind each but the last."""
    pieces = [payload[at : at + sizes] for at in range(0, len(payload), sizes)]
    found = []
    for number, piece in enumerate(pieces):
        is_last = number == len(pieces) - 1
        opcode = TEXT if number == 0 else CONTINUATION
        found.append(frame_bytes(opcode, piece, is_final=is_last) + (b"" if is_last else between))
    return found


@pytest.mark.parametrize("size", (1, 2, 7, 20))
def test_fragments_are_one_message(opened: RawSocket, size: int) -> None:
    assert_answered(opened, *fragments(ASK, size))


def test_fragments_may_be_empty(opened: RawSocket) -> None:
    pieces = [
        frame_bytes(TEXT, b"", is_final=False),
        frame_bytes(CONTINUATION, ASK, is_final=False),
        frame_bytes(CONTINUATION, b"", is_final=False),
        frame_bytes(CONTINUATION, b""),
    ]
    assert_answered(opened, *pieces)


def test_control_frames_come_between_fragments(opened: RawSocket) -> None:
    """Each ping is answered before the message is whole."""
    pieces = fragments(ASK, 8, frame_bytes(PING, b"between") + frame_bytes(PONG, b"idle"))
    *pongs, told, last = answers(opened, *pieces, count=len(pieces))
    assert pongs == [Frame(PONG, b"between")] * (len(pieces) - 1)
    assert json.loads(told.payload) == TOLD
    assert last.code == 1000


def test_a_close_between_fragments_closes(opened: RawSocket) -> None:
    (last,) = answers(opened, frame_bytes(TEXT, ASK[:5], is_final=False))
    assert (last.opcode, last.code) == (CLOSES, 1000)


OUT_OF_TURN: dict[str, list[bytes]] = {
    "a continuation of nothing": [frame_bytes(CONTINUATION, ASK)],
    "an open continuation of nothing": [frame_bytes(CONTINUATION, ASK, is_final=False)],
    "a continuation behind the last": [*fragments(ASK, 20), frame_bytes(CONTINUATION, b"x")],
    "a text inside a text": [frame_bytes(TEXT, b"a", is_final=False), frame_bytes(TEXT, ASK)],
    "bytes inside a text": [frame_bytes(TEXT, b"a", is_final=False), frame_bytes(BINARY, b"b")],
}


@pytest.mark.parametrize("pieces", OUT_OF_TURN.values(), ids=OUT_OF_TURN.keys())
def test_fragments_out_of_turn_are_refused(
    gateway: Gateway, opened: RawSocket, pieces: list[bytes]
) -> None:
    frames = answers(opened, *pieces)
    if frames and frames[0].opcode == TEXT:  # the message before it was a good one
        assert json.loads(frames.pop(0).payload) == TOLD
    assert_refused(gateway, frames, 1002)


# ---------------------------------------------------------------------------------- 6: UTF-8

NO_UTF8 = {
    "a lone byte": b"\xff",
    "a lone continuation": b"\x80",
    "an overlong slash": b"\xc0\xaf",
    "an overlong zero": b"\xe0\x80\x80",
    "a surrogate": b"\xed\xa0\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "cut off": b"\xe2\x82",
    "five bytes": b"\xf8\x88\x80\x80\x80",
}


@pytest.mark.parametrize("wrong", NO_UTF8.values(), ids=NO_UTF8.keys())
@pytest.mark.parametrize("size", (100, 4), ids=("in one frame", "in fragments"))
def test_texts_that_are_no_utf8_are_refused(
    gateway: Gateway, opened: RawSocket, wrong: bytes, size: int
) -> None:
    assert_refused(gateway, answers(opened, *fragments(b'{"type":"' + wrong, size)), 1007)


@pytest.mark.parametrize("size", (1, 2, 3))
def test_a_character_may_be_cut_between_fragments(opened: RawSocket, size: int) -> None:
    text = json.dumps({"type": "ping", "id": "κόσμε\U0001f6a2\uffff"}, ensure_ascii=False)
    told, last = answers(opened, *fragments(text.encode(), size), count=1)
    assert json.loads(told.payload) == {"type": "pong", "id": json.loads(text)["id"]}
    assert last.code == 1000


# ---------------------------------------------------------------------------------- 7: closes


@pytest.mark.parametrize(
    "code",
    (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999),
)
def test_a_close_is_answered_with_its_code(opened: RawSocket, code: int) -> None:
    opened.send(close_bytes(code, b"r" * 123))
    (last,) = opened.frames()
    assert (last.opcode, last.code) == (CLOSES, code)


def test_a_close_needs_no_code(opened: RawSocket) -> None:
    opened.send(close_bytes())
    (last,) = opened.frames()
    assert (last.opcode, last.code) in {(CLOSES, None), (CLOSES, 1000)}


@pytest.mark.parametrize("code", (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999))
def test_a_code_that_nobody_may_send_is_refused(
    gateway: Gateway, opened: RawSocket, code: int
) -> None:
    opened.send(close_bytes(code))
    assert_refused(gateway, list(opened.frames()), 1002)


def test_a_close_of_one_byte_is_refused(gateway: Gateway, opened: RawSocket) -> None:
    opened.send(frame_bytes(CLOSES, b"\x03"))
    assert_refused(gateway, list(opened.frames()), 1002)


def test_a_reason_that_is_no_utf8_is_refused(gateway: Gateway, opened: RawSocket) -> None:
    opened.send(close_bytes(1000, b"\xce\xba\xed\xa0\x80"))
    assert_refused(gateway, list(opened.frames()), 1002, 1007)


def test_nothing_is_answered_behind_a_close(opened: RawSocket) -> None:
    opened.send(END + frame_bytes(TEXT, ASK) + frame_bytes(PING, b"x") + END)
    (last,) = opened.frames()
    assert (last.opcode, last.code) == (CLOSES, 1000)


# ----------------------------------------------------------------------- 9: sizes; masks; handshakes


@pytest.mark.parametrize("length", (17 * MIB, 2**31, 2**62), ids=("17 MiB", "2 GiB", "2^62"))
def test_a_frame_that_is_announced_too_large_is_refused(
    gateway: Gateway, opened: RawSocket, length: int
) -> None:
    """By its head alone, and for no memory."""
    before = gateway.relay.rss_bytes
    frames = answers(opened, frame_bytes(TEXT, b"x", length=length, length_bytes=8))
    assert_refused(gateway, frames, 1009)
    assert gateway.relay.rss_bytes - before < 8 * MIB


def test_a_length_has_no_sign(gateway: Gateway, opened: RawSocket) -> None:
    frames = answers(opened, frame_bytes(TEXT, b"x", length=2**63 + 1, length_bytes=8))
    assert_refused(gateway, frames, 1002, 1009)


@pytest.mark.parametrize("opcode", (TEXT, PING, CLOSES))
def test_frames_without_a_mask_are_refused(
    gateway: Gateway, opened: RawSocket, opcode: int
) -> None:
    """RFC 6455, 5.1: a server must close the connection."""
    payload = b"" if opcode == CLOSES else ASK
    assert_refused(gateway, answers(opened, frame_bytes(opcode, payload, is_masked=False)), 1002)


OPENINGS: dict[str, Callable[[tuple[str, str]], bytes]] = {
    "no key": lambda auth: handshake_bytes("/v1/ws", auth, leave_out="Sec-WebSocket-Key")[0],
    "no version": lambda auth: handshake_bytes("/v1/ws", auth, leave_out="Sec-WebSocket-Version")[
        0
    ],
    "version 8": lambda auth: handshake_bytes("/v1/ws", auth, ("Sec-WebSocket-Version", "8"))[0],
    "no connection": lambda auth: handshake_bytes("/v1/ws", auth, leave_out="Connection")[0],
    "another protocol": lambda auth: handshake_bytes("/v1/ws", auth, ("Upgrade", "h2c"))[0],
    "another method": lambda auth: handshake_bytes("/v1/ws", auth)[0].replace(b"GET", b"POST", 1),
    "an old protocol": lambda auth: handshake_bytes("/v1/ws", auth)[0].replace(
        b"P/1.1", b"P/1.0", 1
    ),
}


GRANIAN_OPENS = (OPENINGS["another method"], OPENINGS["an old protocol"])


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS.keys())
def test_a_half_opening_opens_nothing(
    gateway: Gateway, opening: Callable[[tuple[str, str]], bytes]
) -> None:
    """An ordinary answer: what was asked for, or why not; never a 101."""
    if gateway.front == "granian" and opening in GRANIAN_OPENS:
        pytest.skip("granian opens a socket for any method and any protocol version")
    with RawClient(gateway.port) as client:
        client.send(opening(gateway.auth))
        start = client.block().split(b"\r\n")[0]
    assert start.split(b" ")[1] in {b"200", b"400", b"405", b"426"}, start


@pytest.mark.parametrize("value", ("websocket", "WebSocket", "h2c, websocket"))
def test_upgrades_are_named_in_any_case(gateway: Gateway, value: str) -> None:
    opening, accept = handshake_bytes(
        "/v1/ws", gateway.auth, ("Upgrade", value), ("Connection", "keep-alive, upgrade")
    )
    with RawClient(gateway.port) as client:
        client.send(opening)
        head = client.block().decode().lower()
    assert head.startswith("http/1.1 101 ")
    assert accept.lower() in head
