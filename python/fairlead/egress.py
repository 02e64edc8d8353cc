"""Where fairlead connects to on somebody else's word: targets of webhooks, pages to read.

Only the public internet is reached, and the private networks that the operator named in
`FAIRLEAD_ALLOW_PRIVATE_FETCH`. A URL is judged when it is given (`normalise_target`), and its host
again at each connection: `connect` looks the name up once, judges every address, and dials exactly
one of those. There is no proxy, and a resolver that fails is a refusal.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from urllib.parse import urlsplit

from fairlead import _core
from fairlead.host import DEFAULT_PORTS, AddressRefused, spell_origin, split_address

POLICY = "public"
URL_MAX_CHARS = 2048

# A look-up that hangs holds a thread until the resolver gives up, and all who ask for the same host
# wait for the same one.
LOOKUP_THREADS = 16
LOOKUPS_MAX = 64

_REST = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")


class NameUnknown(OSError):
    """The host has no address, or nobody could say which."""


class AddressForbidden(OSError):
    """The host leads to an address that must not be dialled."""


class Egress:
    """The rule of one process. `networks` is a comma list of CIDRs; `ValueError` when it is not."""

    def __init__(self, networks: str = "") -> None:
        _core.address_allowed("127.0.0.1", POLICY, networks)
        self._networks = networks
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="look-up")
        self._lookups: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    def close(self) -> None:
        """Starts no further look-up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def allows(self, address: str) -> bool:
        """Whether an IP address may be dialled; what is no address may not."""
        try:
            return _core.address_allowed(address, POLICY, self._networks)
        except ValueError:
            return False

    def normalise_target(self, text: str) -> str:
        """`http(s)://host[:port]/path?query` in one spelling; `AddressRefused` for anything else,
        as the end of a sentence that begins with the field's name.
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
        """As `normalise_target`, and what the name leads to now is judged too. A name that leads
        nowhere yet is taken: it is judged again at each connection.
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
        """The addresses of a host, each judged. `AddressForbidden` if any must not be dialled: a
        name that mixes them is being played with. `NameUnknown` if there is none to be had.
        """
        addresses = [host] if _is_literal(host) else await self._look_up(host, port)
        if not addresses:
            raise NameUnknown("the host has no address")
        if not all(self.allows(address) for address in addresses):
            raise AddressForbidden("the host leads to an address that must not be dialled")
        return addresses

    async def connect(self, url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection for this URL's host, by TLS under the host's name if it is https. The caller
        sets the deadline.

        `AddressForbidden`, `NameUnknown`, `ssl.SSLError`, or another `OSError`.
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
        # Whoever gives up waiting does not take the answer from the others.
        return await asyncio.shield(lookup)

    def _allowed(self, address: str) -> str:
        if not self.allows(address):
            raise AddressRefused(
                f"must not be {address}, a private or reserved address; the operator opens "
                "networks with FAIRLEAD_ALLOW_PRIVATE_FETCH"
            )
        return address


def host_and_port(url: str) -> tuple[str, int]:
    """Where a URL in its normal spelling leads to; an IPv6 address is without its brackets."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]


@cache
def _tls() -> ssl.SSLContext:
    # Imported here because few gateways send anything: it takes megabytes. Reading the trusted certificates takes
    # tens of milliseconds.
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
