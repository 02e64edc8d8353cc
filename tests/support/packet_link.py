"""Links between processes that lose or hold back whole packets, as a network does: nobody is told, no connection is
even taken, and what was sent goes again when the kernel thinks so.

with PacketLinks() as links:
    with links.link(port_of_server) as link:
        ... clients connect to link.host, link.port ...
        link.cut()
        link.mend()
        link.delay_s = 0.5

The thread that enters is in a network namespace of its own until the end of the `with`, and so is every thread and
process that it starts: nothing of this reaches the machine's own network. Needs root; others get an `OSError`.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Final, Self

NAMESPACE: Final = "/proc/thread-self/ns/net"
CLONE_NEWNET: Final = 0x4000_0000
TUNSETIFF: Final = 0x4004_54CA
# Packets without a header of the device's own.
IFF_TUN, IFF_NO_PI = 0x1, 0x1000
PACKET_MAX: Final = 65_536
DEVICE: Final = "links"
# Addresses that are set aside for trying networks, and lead nowhere (RFC 2544).
OWN_HOST: Final = "198.18.255.1"
NETWORK: Final = "198.18.0.0/16"


@dataclass(eq=False)
class PacketLink:
    """The way to one port, at an address of its own."""

    host: str
    port: int
    delay_s: float = 0.0
    """How long each packet takes, in either direction."""
    loses: float = 0.0
    """Which part of the packets is lost."""
    answered_s: float = 0.0
    """When bytes last came from the target, by `time.monotonic`."""

    def __enter__(self) -> Self:
        _ip("route", "add", f"{self.host}/32", "dev", DEVICE, "src", OWN_HOST)
        return self

    def __exit__(self, *_: object) -> None:
        _ip("route", "del", f"{self.host}/32", "dev", DEVICE)

    def cut(self) -> None:
        self.loses = 1.0

    def mend(self) -> None:
        self.loses = 0.0


@dataclass
class PacketLinks:
    """Makes links, and passes their packets on a thread. The servers behind them listen on `listen`."""

    listen: str = "0.0.0.0"
    _links: dict[bytes, PacketLink] = field(default_factory=dict)
    _chance: random.Random = field(default_factory=lambda: random.Random(17))
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __enter__(self) -> Self:
        self._before = os.open(NAMESPACE, os.O_RDONLY)
        try:
            _call("unshare", CLONE_NEWNET)
            try:
                self._device = _make_device()
            except BaseException:
                _call("setns", self._before, CLONE_NEWNET)
                raise
        except BaseException:
            os.close(self._before)
            raise
        self._stop, self._stopping = os.pipe()
        self._thread = threading.Thread(target=self._pass_packets, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._stopping)
        self._thread.join(10)
        os.close(self._stop)
        os.close(self._device)
        _call("setns", self._before, CLONE_NEWNET)
        os.close(self._before)

    def link(self, port: int) -> PacketLink:
        """A link to a port, which has to be entered."""
        host = f"198.18.0.{next(self._numbers)}"
        link = PacketLink(host, port)
        self._links[bytes(map(int, host.split(".")))] = link
        return link

    def _pass_packets(self) -> None:
        """A packet to a link's address comes back into the machine as one from there, and so does its answer."""
        order = itertools.count()
        held: list[tuple[float, int, PacketLink, bytes]] = []
        while True:
            wait_s = max(0.0, held[0][0] - time.monotonic()) if held else None
            ready, _, _ = select.select([self._device, self._stop], [], [], wait_s)
            if self._stop in ready:
                return
            if self._device in ready:
                packet = os.read(self._device, PACKET_MAX)
                link = self._links.get(packet[16:20])
                if link is not None and self._chance.random() >= link.loses:
                    due_s = time.monotonic() + link.delay_s
                    heapq.heappush(held, (due_s, next(order), link, packet))
            while held and held[0][0] <= time.monotonic():
                *_, link, packet = heapq.heappop(held)
                if _is_answer(packet, link.port):
                    link.answered_s = time.monotonic()
                # The sums of the headers are the same for addresses that have changed places.
                os.write(self._device, packet[:12] + packet[16:20] + packet[12:16] + packet[20:])


def _is_answer(packet: bytes, port: int) -> bool:
    """Whether a packet of TCP has bytes from the target in it."""
    tcp = (packet[0] & 15) * 4
    if packet[tcp : tcp + 2] != port.to_bytes(2):
        return False
    return len(packet) > tcp + (packet[tcp + 12] >> 4) * 4


def _make_device() -> int:
    """The network device whose packets this process gets, in the namespace of this thread."""
    _ip("link", "set", "lo", "up")
    device = os.open("/dev/net/tun", os.O_RDWR)
    try:
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
        _ip("addr", "add", f"{OWN_HOST}/32", "dev", DEVICE)
        _ip("link", "set", DEVICE, "up")
    except BaseException:
        os.close(device)
        raise
    return device


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _call(function: str, *arguments: int) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
