"""Outgoing connections to addresses that callers chose: webhook targets, pages to scrape.

Only the public internet is reachable, plus the private networks in `FAIRLEAD_ALLOW_PRIVATE_FETCH`. A URL is
checked when it is stored (`normalise_target`), and its host again at each connection: `connect` resolves the
name once, checks every address and dials one of them, so DNS rebinding has no effect. No proxy is used, and a
failed lookup refuses the connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from fairlead import _core
from fairlead.net.host import DEFAULT_PORTS, AddressRefused, spell_origin, split_address
from fairlead.net.url import split_url

POLICY = "public"
URL_MAX_CHARS = 2048

# A hanging lookup holds a thread until the resolver gives up; lookups of one host share one thread.
LOOKUP_THREADS = 16
LOOKUPS_MAX = 64

_REST = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")


class NameUnknown(OSError):
    """The host has no address, or the lookup failed."""


class AddressForbidden(OSError):
    """The host resolves to an address that must not be dialled."""


class Egress:
    """The egress policy of one process. `networks` is a comma-separated list of CIDRs; `ValueError` if it is
    malformed.
    """

    def __init__(self, networks: str = "") -> None:
        _core.address_allowed("127.0.0.1", POLICY, networks)
        self._networks = networks
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="look-up")
        self._lookups: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    def close(self) -> None:
        """Cancels waiting lookups and starts no further one."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def allows(self, address: str) -> bool:
        """Whether an IP address may be dialled; False for text that is no address."""
        try:
            return _core.address_allowed(address, POLICY, self._networks)
        except ValueError:
            return False

    def normalise_target(self, text: str) -> str:
        """Returns `http(s)://host[:port]/path?query` in one canonical spelling.

        Raises `AddressRefused`, worded to follow the field's name.
        """
        if len(text) > URL_MAX_CHARS:
            raise AddressRefused(f"must have at most {URL_MAX_CHARS} characters")
        if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
            raise AddressRefused("must be printable ASCII without spaces and backslashes")
        if "#" in text:
            raise AddressRefused("must have no fragment")
        parts = split_address(text)
        rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if _REST.fullmatch(rest) is None:
            raise AddressRefused("must have a path and a query of URL characters, others encoded")
        return f"{spell_origin(parts, self._allowed)}{rest}"

    async def check_target(self, text: str, *, deadline_s: float = 3.0) -> str:
        """Normalises a URL as `normalise_target` does, and checks the addresses that its host resolves to now.

        A name without an address is accepted, since it is checked again at each connection. Raises
        `AddressRefused`.
        """
        url = self.normalise_target(text)
        host, port = host_and_port(url)
        try:
            async with asyncio.timeout(deadline_s):
                await self.resolve(host, port)
        except AddressForbidden:
            raise AddressRefused(
                f"must not lead to a private or reserved address, as {host} does now; "
                "the operator opens networks with FAIRLEAD_ALLOW_PRIVATE_FETCH"
            ) from None
        except (NameUnknown, TimeoutError):
            pass
        return url

    async def resolve(self, host: str, port: int) -> list[str]:
        """The checked addresses of a host.

        Raises `AddressForbidden` if any of them must not be dialled (a name with mixed addresses suggests an
        attack), `NameUnknown` if there is none.
        """
        addresses = [host] if _is_literal(host) else await self._look_up(host, port)
        if not addresses:
            raise NameUnknown("the host has no address")
        if not all(self.allows(address) for address in addresses):
            raise AddressForbidden("the host leads to an address that must not be dialled")
        return addresses

    async def connect(self, url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the URL's host, for https by TLS under the host's name. The caller sets the deadline.

        Raises `AddressForbidden`, `NameUnknown`, `ssl.SSLError` or another `OSError`.
        """
        host, port = host_and_port(url)
        is_tls = url.startswith("https:")
        errors: list[OSError] = []
        for address in await self.resolve(host, port):
            try:
                return await asyncio.open_connection(
                    address,
                    port,
                    ssl=_tls() if is_tls else None,
                    server_hostname=host if is_tls else None,
                )
            except OSError as error:
                errors.append(error)
        raise errors[0]

    async def _look_up(self, host: str, port: int) -> list[str]:
        wanted = (host, port)
        lookup = self._lookups.get(wanted)
        if lookup is None:
            if len(self._lookups) >= LOOKUPS_MAX:
                raise NameUnknown("too many names are being looked up")
            loop = asyncio.get_running_loop()
            lookup = asyncio.ensure_future(
                loop.run_in_executor(self._threads, _addresses_of, host, port)
            )
            self._lookups[wanted] = lookup
            lookup.add_done_callback(lambda _: self._lookups.pop(wanted, None))
        # Shielded: one waiter's cancellation must not cancel the lookup for the others.
        return await asyncio.shield(lookup)

    def _allowed(self, address: str) -> str:
        if not self.allows(address):
            raise AddressRefused(
                f"must not be {address}, a private or reserved address; the operator opens "
                "networks with FAIRLEAD_ALLOW_PRIVATE_FETCH"
            )
        return address


def host_and_port(url: str) -> tuple[str, int]:
    """Host and port of a normalised URL; an IPv6 address has no brackets."""
    parts = split_url(url)
    return parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]


@cache
def _tls() -> ssl.SSLContext:
    # Imported here because few gateways send anything and it takes megabytes. Cached: reading the trusted
    # certificates takes tens of milliseconds.
    import httpx  # noqa: PLC0415

    return httpx.create_ssl_context(trust_env=False)


def _addresses_of(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
