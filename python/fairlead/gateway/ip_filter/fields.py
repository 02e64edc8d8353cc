"""The bodies of `/api/settings/ip-filter`, and the form in which it is stored."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictInt
from pydantic_core import PydanticCustomError

from fairlead.gateway.fields import Text
from fairlead.moment import Time
from fairlead.wire import ChangeWire, Wire

ENTRIES_MAX = 5_000
BANS_MAX = 1_000
LONGEST_BAN_MS = 366 * 86_400_000

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
AddressRange = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(text: str) -> str:
    try:
        network = ipaddress.ip_network(text.strip(), strict=True)
        if isinstance(network, ipaddress.IPv6Network) and "%" in text:
            raise ValueError
    except ValueError:
        raise PydanticCustomError(
            "network",
            "must be an address or a network such as 10.1.0.0/16 or 2001:db8::/32, without bits "
            "behind its prefix",
        ) from None
    return str(network.network_address) if network.num_addresses == 1 else str(network)


NetworkText = Annotated[Text, Field(min_length=2, max_length=64), AfterValidator(_network)]
Entries = Annotated[list[NetworkText], Field(max_length=ENTRIES_MAX)]


class TempBan(Wire):
    """A ban that expires."""

    ip: NetworkText
    duration_ms: StrictInt = Field(ge=1_000, le=LONGEST_BAN_MS)
    reason: Annotated[Text, Field(max_length=300)] | None = None


class BanView(Wire):
    """A ban in force; `until` is its end."""

    ip: str
    until: Time
    reason: str | None


class IpFilterView(Wire):
    """`enabled` and `mode` say which list decides; bans hold either way. This machine itself is always let
    in.
    """

    enabled: bool
    mode: Literal["blacklist", "whitelist"]
    blacklist: list[str]
    whitelist: list[str]
    bans: list[BanView]


class IpFilterChange(ChangeWire):
    """A change of the filter; what is not sent stays. Lists that are sent replace those that are stored, before
    what is added and removed.
    """

    enabled: StrictBool = False
    mode: Literal["blacklist", "whitelist"] = "blacklist"
    blacklist: Entries = Field([])
    whitelist: Entries = Field([])
    add_blacklist: NetworkText | Entries | None = None
    remove_blacklist: NetworkText | Entries | None = None
    add_whitelist: NetworkText | Entries | None = None
    remove_whitelist: NetworkText | Entries | None = None
    temp_ban: TempBan | None = None
    remove_ban: NetworkText | None = None


class StoredBan(BaseModel):
    """A ban as it is stored; UTC milliseconds."""

    ip: str
    until_ms: int
    reason: str | None = None


class StoredFilter(BaseModel):
    """The filter as it is stored."""

    enabled: bool = False
    mode: Literal["blacklist", "whitelist"] = "blacklist"
    blacklist: list[str] = []
    whitelist: list[str] = []
    bans: list[StoredBan] = []

    def admits(self, address: str, at_ms: int) -> bool:
        """Whether the relay lets this address in at that moment (UTC milliseconds)."""
        try:
            caller = _unmapped(ipaddress.ip_address(address))
        except ValueError:
            return True
        if caller.is_loopback:
            return True
        if self.enabled:
            listed = self.whitelist if self.mode == "whitelist" else self.blacklist
            if _is_in(caller, listed) != (self.mode == "whitelist"):
                return False
        return not _is_in(caller, [ban.ip for ban in self.bans if ban.until_ms > at_ms])


def _is_in(address: Address, networks: list[str]) -> bool:
    return any(address in _unmapped_network(ipaddress.ip_network(each)) for each in networks)


def _unmapped(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _unmapped_network(network: AddressRange) -> AddressRange:
    mapped = (
        network.network_address.ipv4_mapped
        if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= 96
        else None
    )
    return network if mapped is None else ipaddress.ip_network((mapped, network.prefixlen - 96))
