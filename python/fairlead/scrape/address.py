"""Addresses of pages: which are accepted, and the canonical spelling of each."""

from __future__ import annotations

import re
import socket
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlunsplit

from fairlead.errors import InvalidRequest
from fairlead.net.url import join_url, split_url

if TYPE_CHECKING:
    # The processes that read pages know addresses, and nothing of the network.
    from fairlead.net.egress import Egress

URL_MAX_CHARS = 2048

# Ports of services that are not the web: the list of the Fetch standard, and databases.
BAD_PORTS = frozenset(
    [
        0,
        1,
        7,
        9,
        11,
        13,
        15,
        17,
        19,
        20,
        21,
        22,
        23,
        25,
        37,
        42,
        43,
        53,
        69,
        77,
        79,
        87,
        95,
        101,
        102,
        103,
        104,
        109,
        110,
        111,
        113,
        115,
        117,
        119,
        123,
        135,
        137,
        139,
        143,
        161,
        179,
        389,
        427,
        465,
        512,
        513,
        514,
        515,
        526,
        530,
        531,
        532,
        540,
        548,
        554,
        556,
        563,
        587,
        601,
        636,
        989,
        990,
        993,
        995,
        1719,
        1720,
        1723,
        2049,
        2375,
        2379,
        3306,
        3659,
        4045,
        4190,
        5060,
        5061,
        5432,
        6000,
        6379,
        6566,
        6665,
        6666,
        6667,
        6668,
        6669,
        6679,
        6697,
        9042,
        9200,
        10080,
        11211,
        27017,
    ]
)

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_SKIPPED_SUFFIXES = re.compile(
    r"\.(?:png|jpe?g|gif|webp|avif|ico|svg|css|js|mjs|woff2?|ttf|eot|otf|mp[34]|webm|ogg|wav|avi|mov|zip|gz|tgz|bz2|xz"
    r"|7z|rar|exe|dmg|iso|msi|apk|deb|rpm|pdf|docx?|xlsx?|pptx?)$",
    re.IGNORECASE,
)


class BadAddress(ValueError):
    """An address that is refused; its text is a predicate such as `must use http or https`."""


def canonical(url: str, base: str | None = None) -> str:
    """The canonical spelling of an absolute http(s) address, without its fragment. `BadAddress`."""
    if _FORBIDDEN.search(url):
        raise BadAddress("must not contain blanks, control characters or backslashes")
    try:
        parts = split_url(join_url(base, url) if base else url)
        port = parts.port
    except ValueError:
        raise BadAddress("is not a valid URL") from None
    scheme = parts.scheme.lower()
    if scheme not in {"http", "https"}:
        raise BadAddress("must use http or https")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise BadAddress("must not carry a user name or password")
    host = _host(parts.hostname or "")
    if port is not None and port in BAD_PORTS:
        raise BadAddress(f"uses port {port}, which belongs to another service than the web")
    default = 443 if scheme == "https" else 80
    netloc = host if port in {None, default} else f"{host}:{port}"
    known = urlunsplit((scheme, netloc, _dots(parts.path) or "/", parts.query, ""))
    if len(known) > URL_MAX_CHARS:
        raise BadAddress(f"is longer than {URL_MAX_CHARS} characters")
    return known


def check_url(url: str, egress: Egress, param: str = "url") -> str:
    """The canonical spelling of an address that a caller sent. `InvalidRequest` names the field.

    IP addresses, in every spelling that a resolver takes, are checked here; host names when they are dialled.
    """
    try:
        known = canonical(url)
        literal = _literal(split_url(known).hostname or "")
        if literal is not None and not egress.allows(literal):
            raise BadAddress("leads to a private or reserved address, which is not fetched")
    except BadAddress as fault:
        raise InvalidRequest(f"{param} {fault}.", param=param) from None
    return known


def is_page(url: str) -> bool:
    """Whether a link may lead to a page, by the suffix of its path."""
    return not _SKIPPED_SUFFIXES.search(split_url(url).path)


def host_of(url: str) -> str:
    """Host and port of a canonical address."""
    return split_url(url).netloc


@lru_cache(4096)
def _host(host: str) -> str:
    if not host:
        raise BadAddress("has no host")
    if ":" in host:
        try:
            socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
        except OSError:
            raise BadAddress("has no valid host") from None
        return f"[{host}]"
    try:
        # IDNA also maps full-width digits and the other dots, so no look-alike goes around.
        name = host.encode("idna").decode("ascii").lower() if not host.isascii() else host.lower()
    except UnicodeError:
        raise BadAddress("has no valid host") from None
    name = name.removesuffix(".")
    if len(name) > 253 or not all(_NAME.fullmatch(label) for label in name.split(".")):
        raise BadAddress("has no valid host")
    return name


def _literal(host: str) -> str | None:
    if ":" in host:
        return host
    if re.fullmatch(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}", host):
        try:
            return socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            raise BadAddress("has no valid host") from None
    if host == "localhost" or host.endswith(".localhost"):
        return "127.0.0.1"
    return None


def _dots(path: str) -> str:
    if "/." not in path:
        return path
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if len(segments) > 1:
                segments.pop()
        elif segment != ".":
            segments.append(segment)
    if path.endswith(("/.", "/..")):
        segments.append("")
    return "/".join(segments)
