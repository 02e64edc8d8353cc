"""H11: HTTP/2 callers that abuse the protocol, before the engine's own listener. Nothing they do stops the others."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Self

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import httpx
import pytest

from tests.support.chat import CHAT, chat_bytes
from tests.support.gateway_pool import GatewayPool
from tests.support.processes import Gateway, Lane
from tests.support.upstream import STALL, Upstream, completion, reply

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def native(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    with gateway_pool.lease(FAIRLEAD_FRONT="native") as running:
        yield running


@pytest.fixture
def wide(native: Gateway, upstream: Upstream) -> Lane:
    return native.add_lane(upstream)


class Abuser:
    """A connection of HTTP/2 that checks nothing of what it sends."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        config = h2.config.H2Configuration(
            client_side=True,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            header_encoding="utf-8",
        )
        self.h2 = h2.connection.H2Connection(config)
        self.h2.initiate_connection()
        self.flush()
        self.events: list[h2.events.Event] = []
        self.is_ended = False

    def __enter__(self) -> Self:
        self.until(h2.events.SettingsAcknowledged)
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def send(self, data: bytes) -> None:
        """Bytes as they are. A connection that is gone takes none."""
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def head(
        self, *more: tuple[str, str], path: str = "/healthz", method: str = "GET", end: bool = True
    ) -> int:
        """Opens a stream; its number."""
        stream = int(self.h2.get_next_available_stream_id())
        pseudo = [
            (":method", method),
            (":scheme", "http"),
            (":authority", "localhost"),
            (":path", path),
        ]
        self.h2.send_headers(stream, [*pseudo, *more], end_stream=end)
        return stream

    def look(self, timeout_s: float = 10) -> list[h2.events.Event]:
        """What comes next, after it was taken note of."""
        self.socket.settimeout(timeout_s)
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.is_ended = True
            return []
        found: list[h2.events.Event] = self.h2.receive_data(data)
        self.events += found
        with contextlib.suppress(OSError):
            self.flush()
        return found

    def until(self, kind: type[h2.events.Event], stream: int | None = None) -> h2.events.Event:
        """The next event of this kind."""
        while True:
            for event in self.events:
                if isinstance(event, kind) and stream in (None, getattr(event, "stream_id", None)):
                    self.events.remove(event)
                    return event
            assert not self.is_ended, "the connection has ended"
            self.look()

    def until_ended(self) -> h2.errors.ErrorCodes | int | None:
        """Reads to the end of the connection: the code that it was ended with, if one was said."""
        with contextlib.suppress(h2.exceptions.ProtocolError):
            while not self.is_ended:
                self.look()
        codes = [e.error_code for e in self.events if isinstance(e, h2.events.ConnectionTerminated)]
        return codes[-1] if codes else None


def status_of(event: h2.events.Event) -> str:
    assert isinstance(event, h2.events.ResponseReceived)
    return dict(event.headers or ())[":status"]


def assert_well(gateway: Gateway) -> None:
    """Others are served, over both protocols."""
    for protocols in ({"http1": True}, {"http1": False, "http2": True}):
        with httpx.Client(trust_env=False, timeout=10, **protocols) as client:
            assert client.get(f"{gateway.url}/healthz").status_code == 200


def test_a_model_is_called(native: Gateway, wide: Lane) -> None:
    """Several calls at once over one connection, each with its own answer."""
    wide.upstream.script(*(reply(completion(str(number))) for number in range(8)))
    body = chat_bytes(wide)
    with Abuser(native.port) as caller:
        header = ("authorization", f"Bearer {native.key}")
        streams = []
        for _ in range(8):
            number = caller.head(
                header, ("content-type", "application/json"), path=CHAT, method="POST", end=False
            )
            caller.h2.send_data(number, body, end_stream=True)
            streams.append(number)
        caller.flush()
        for number in streams:
            assert status_of(caller.until(h2.events.ResponseReceived, number)) == "200"
            caller.until(h2.events.StreamEnded, number)


def test_two_hosts_are_refused(native: Gateway) -> None:
    """H7: `:authority` and `host` name one host."""
    with Abuser(native.port) as caller:
        number = caller.head(("host", "evil.example"))
        caller.flush()
        assert status_of(caller.until(h2.events.ResponseReceived, number)) == "400"
        again = caller.head(("host", "localhost"))
        caller.flush()
        assert status_of(caller.until(h2.events.ResponseReceived, again)) == "200"


def test_the_limits_are_told(native: Gateway) -> None:
    with Abuser(native.port) as caller:
        told = caller.h2.remote_settings
        assert told.max_concurrent_streams == 100
        assert told.initial_window_size == 64 * 1024
        assert told.max_header_list_size == 64 * 1024


def test_rapid_resets_end_the_connection(native: Gateway) -> None:
    """CVE-2023-44487: streams that are opened and reset at once, by the thousand."""
    before = native.relay.rss_bytes
    with Abuser(native.port) as caller:
        for _ in range(5000):
            number = caller.head()
            caller.h2.reset_stream(number, h2.errors.ErrorCodes.CANCEL)
        caller.send(caller.h2.data_to_send())
        assert caller.until_ended() == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM
    assert_well(native)
    assert native.relay.rss_bytes - before < 20 * MIB


def test_more_streams_than_allowed_are_refused(native: Gateway, wide: Lane) -> None:
    """The 101st stream is refused, and the hundred go on."""
    wide.upstream.script([STALL])
    with Abuser(native.port) as caller:
        caller.h2.remote_settings[h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS] = 1000
        caller.h2.remote_settings.acknowledge()
        headers = (("authorization", f"Bearer {native.key}"), ("content-type", "application/json"))
        numbers = [caller.head(*headers, path=CHAT, method="POST", end=False) for _ in range(101)]
        caller.flush()
        reset = caller.until(h2.events.StreamReset)
        assert isinstance(reset, h2.events.StreamReset)
        assert (reset.stream_id, reset.error_code) == (
            numbers[-1],
            h2.errors.ErrorCodes.REFUSED_STREAM,
        )
        assert not caller.is_ended
    assert_well(native)


@pytest.mark.parametrize(
    "header",
    [("x-large", "y" * 70_000), ("cookie", "z" * 40_000)],
    ids=("beyond the list", "beyond our limit"),
)
def test_large_heads_are_refused(native: Gateway, header: tuple[str, str]) -> None:
    """H3: 431, whether the list is refused while it is unpacked or when it is judged."""
    with Abuser(native.port) as caller:
        number = caller.head(header)
        caller.flush()
        assert status_of(caller.until(h2.events.ResponseReceived, number)) == "431"
    assert_well(native)


def packed_references(caller: Abuser, count: int) -> bytes:
    """A head that names one large field `count` times, a byte each (CVE-2026-105297)."""
    first = caller.head(("x-bomb", "b" * 3000))
    caller.flush()
    caller.until(h2.events.ResponseReceived, first)
    # The newest entry of the dynamic table is number 62.
    return (
        caller.h2.encoder.encode(
            [
                (":method", "GET"),
                (":scheme", "http"),
                (":authority", "localhost"),
                (":path", "/healthz"),
            ]
        )
        + bytes([0x80 | 62]) * count
    )


def test_a_packed_bomb_is_bounded(native: Gateway) -> None:
    """One byte stands for three kilobytes, ten thousand times, on fifty connections."""
    before = native.relay.rss_bytes
    for _ in range(50):
        with Abuser(native.port) as caller:
            block = packed_references(caller, 10_000)
            number = int(caller.h2.get_next_available_stream_id())
            frame = len(block).to_bytes(3, "big") + bytes([1, 0x5]) + number.to_bytes(4, "big")
            caller.send(frame + block)
            with contextlib.suppress(AssertionError, h2.exceptions.ProtocolError):
                caller.until(h2.events.ResponseReceived, number)
    assert_well(native)
    assert native.relay.rss_bytes - before < 30 * MIB


def frame(kind: int, payload: bytes, flags: int = 0, stream: int = 0) -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )


FLOODS: dict[str, Callable[[], bytes]] = {
    "pings": lambda: frame(6, bytes(8)) * 20_000,
    "settings": lambda: frame(4, b"") * 20_000,
    "priorities": lambda: frame(2, b"\0\0\0\0\0", stream=1) * 20_000,
    "empty data": lambda: frame(1, b"\x82\x86\x84\x41\x01a", 4, 1) + frame(0, b"", 0, 1) * 20_000,
    "continuations": lambda: frame(1, b"\x82\x86\x84", 0, 1) + frame(9, b"", 0, 1) * 20_000,
    "window updates": lambda: frame(8, b"\0\0\0\1") * 20_000,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_floods_are_survived(native: Gateway, flood: str) -> None:
    """Answers that nobody reads do not pile up: the connection is ended, or what came cost little."""
    before = native.relay.rss_bytes
    with Abuser(native.port) as caller:
        caller.socket.settimeout(5)
        caller.send(FLOODS[flood]())
        assert_well(native)
    assert native.relay.rss_bytes - before < 20 * MIB
