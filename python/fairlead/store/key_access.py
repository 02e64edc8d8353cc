"""When and from where a key may be used, judged by control where it acts for one.

The relay judges every call of a key itself (`rust/core/src/schedule.rs`, `policy.rs`); here the same rules hold for
what somebody does as a key in the console, whose calls pass no relay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def is_open(schedule: Mapping[str, Any] | None, at: datetime) -> bool:
    """Whether a key with this `accessSchedule` may be used at a time with a zone.

    Hours that end before they begin go past midnight, on the day on which they begin. A zone that is not known is
    never open: a rule that cannot be read is no permission.
    """
    if schedule is None or not schedule["enabled"]:
        return True
    try:
        local = at.astimezone(ZoneInfo(schedule["tz"]))
    except (ZoneInfoNotFoundError, ValueError):
        return False
    minute = local.hour * 60 + local.minute
    first, last = _minute(schedule["from"]), _minute(schedule["until"])
    today = local.isoweekday() % 7
    is_today, is_yesterday = (day in schedule["days"] for day in (today, (today + 6) % 7))
    if first < last:
        return is_today and first <= minute < last
    return (is_today and minute >= first) or (is_yesterday and minute < last)


def is_listed(allowlist: Sequence[str], address: str) -> bool:
    """Whether a key with this `ipAllowlist` may be used from an address; a text that is none is this machine's.

    An empty list admits all. This machine has two families of addresses, and a list that names one means both.
    """
    if not allowlist:
        return True
    networks = [_network(each) for each in allowlist]
    whose: tuple[IPv6Address, ...]
    try:
        whose = (_long(ip_address(address)),)
    except ValueError:
        whose = _HERE
    if any(whose[0] in network for network in _LOOPBACKS):
        whose = (*whose, *_HERE)
    return any(each in network for each in whose for network in networks)


def _minute(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def _long(address: IPv4Address | IPv6Address) -> IPv6Address:
    """An address in its IPv6 form."""
    return address if isinstance(address, IPv6Address) else IPv6Address(f"::ffff:{address}")


def _network(text: str) -> IPv6Network:
    network = ip_network(text)
    if isinstance(network, IPv6Network):
        return network
    return IPv6Network(f"::ffff:{network.network_address}/{96 + network.prefixlen}")


_HERE: Final = (IPv6Address("::1"), IPv6Address("::ffff:127.0.0.1"))
_LOOPBACKS: Final = (IPv6Network("::1/128"), IPv6Network("::ffff:127.0.0.0/104"))
