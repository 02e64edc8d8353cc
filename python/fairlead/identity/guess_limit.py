"""Five wrong passwords within 15 minutes lock an address for 15 minutes.

An attempt is counted before its password is looked at and taken back if it was right, so attempts
that run at the same time cannot slip past the count. Time is the monotonic clock: setting the wall
clock unlocks nobody. The address is the one that the relay's socket saw.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlead.errors import RateLimited

FAILURES_MAX = 5
WINDOW_S = 15 * 60.0
LOCK_S = 15 * 60.0
ADDRESSES_MAX = 10_000


@dataclass(slots=True)
class _Record:
    attempts: list[float] = field(default_factory=list)
    locked_until: float = 0.0


class GuessLimit:
    """Counts wrong passwords per address; the address not seen for longest is forgotten when there
    are too many.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def begin(self, peer: str) -> float:
        """Counts an attempt as wrong until it is withdrawn; returns the mark for `withdraw`.
        `RateLimited` while the address is locked.
        """
        now = self._now()
        address = network_of(peer)
        record = self._records.setdefault(address, _Record())
        self._records.move_to_end(address)
        if len(self._records) > ADDRESSES_MAX:
            self._records.popitem(last=False)
        if record.locked_until > now:
            raise RateLimited(
                "Too many failed attempts. Try again later.",
                retry_after_s=math.ceil(record.locked_until - now),
            )
        record.attempts = [at for at in record.attempts if at > now - WINDOW_S]
        record.attempts.append(now)
        if len(record.attempts) >= FAILURES_MAX:
            record.locked_until = now + LOCK_S
            record.attempts.clear()
        return now

    def forgive(self, peer: str) -> None:
        """Forgets an address's wrong attempts after a right password."""
        self._records.pop(network_of(peer), None)

    def withdraw(self, peer: str, mark: float) -> None:
        """Takes back an attempt that failed through no fault of the caller (overload, storage)."""
        record = self._records.get(network_of(peer))
        if record is None:
            return
        if record.locked_until == mark + LOCK_S:
            record.locked_until = 0.0
            record.attempts = [mark] * (FAILURES_MAX - 1)
        elif mark in record.attempts:
            record.attempts.remove(mark)


def network_of(peer: str) -> str:
    """The address to count by: an IPv4 address in its normal form, or the /64 of an IPv6 address,
    which one caller usually owns.
    """
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer[:64]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
