"""The way between relays and controls of different machines: its token and addresses, and the context of its TLS."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead.net.url import split_url

NODE_TOKEN_MIN: Final = 32
_TOKEN_MAX: Final = 512
_CONTROLS_MAX: Final = 16
_HIGHEST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """The address on which a control listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def check_node_token(text: str) -> None:
    """Raises `ValueError` for a token that can be guessed or that is not valid in a header."""
    if not NODE_TOKEN_MIN <= len(text) <= _TOKEN_MAX or not all(
        "!" <= each <= "~" for each in text
    ):
        raise ValueError(
            f"must be {NODE_TOKEN_MIN} to {_TOKEN_MAX} characters of ASCII without spaces; make one with "
            "`openssl rand -hex 32`"
        )


def read_control_urls(text: str) -> list[NodeAddress]:
    """The addresses in a list of URLs. Raises `ValueError` for one that is none of a control."""
    urls = [each.strip() for each in text.split(",") if each.strip()]
    if not 1 <= len(urls) <= _CONTROLS_MAX:
        raise ValueError(f"must name 1 to {_CONTROLS_MAX} controls, such as https://10.0.0.5:20129")
    return [_read_url(each) for each in urls]


def _read_url(text: str) -> NodeAddress:
    try:
        parts = split_url(text)
        port = parts.port
    except ValueError:
        parts, port = split_url(""), None
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment
    if (
        parts.scheme != "https"
        or not parts.hostname
        or not port
        or not is_bare
        or "@" in parts.netloc
    ):
        raise ValueError("must be https://host:port for each control, since relays use only TLS")
    return NodeAddress(parts.hostname, port)


def read_listen(text: str) -> NodeAddress:
    """The address in `host:port`. Raises `ValueError` for another form."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 1 <= int(port) <= _HIGHEST_PORT:
        raise ValueError("must be an address and a port, such as 10.0.0.5:20129")
    return NodeAddress(host, int(port))


def control_context(certificate: Path, key: Path, ca: Path | None) -> ssl.SSLContext:
    """For a control: with authorities, a relay without a certificate of theirs is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Given a password, even an empty one, OpenSSL does not ask for one on the terminal.
    context.load_cert_chain(certificate, key, password="")
    if ca is not None:
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["http/1.1"])
    return context


def relay_context(certificate: Path | None, key: Path | None, ca: Path | None) -> ssl.SSLContext:
    """For a relay: a control's certificate must come from the authorities and be valid for the name in the URL."""
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None and key is not None:
        context.load_cert_chain(certificate, key, password="")
    context.set_alpn_protocols(["http/1.1"])
    return context
