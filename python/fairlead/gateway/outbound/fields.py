"""The bodies of `/api/settings/proxy`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, PlainSerializer, SecretStr, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from fairlead import _core
from fairlead.gateway.fields import Spelled, Text
from fairlead.gateway.nodes.fields import BaseUrl
from fairlead.gateway.outbound.table import DIRECT, Level, Scheme
from fairlead.net.host import AddressRefused, normalise_host
from fairlead.net.operator_egress import POLICY
from fairlead.wire import Wire

MASK = "***"
# A login of SOCKS5 has a length of one byte.
LOGIN_MAX_BYTES = 255


def _host(text: str) -> str:
    shown = f"[{text}]" if ":" in text and not text.startswith("[") else text
    try:
        host = normalise_host(shown, _allowed)
    except AddressRefused as error:
        raise PydanticCustomError("host", "{reason}", {"reason": str(error)}) from None
    return host.removeprefix("[").removesuffix("]")


def _allowed(address: str) -> str:
    if not _core.address_allowed(address, POLICY):
        raise AddressRefused(
            f"must not be {address}: link-local, metadata and multicast addresses are never dialled"
        )
    return address


def _short(text: SecretStr) -> SecretStr:
    if len(text.get_secret_value().encode()) > LOGIN_MAX_BYTES:
        raise PydanticCustomError("login", "must be at most 255 bytes long")
    return text


Host = Annotated[Text, Field(min_length=1, max_length=253), AfterValidator(_host)]
Username = Annotated[
    Text,
    Field(min_length=1, max_length=255),
    Spelled(r"[^\x00-\x1f\x7f:]+", "must be without control characters and colons"),
    AfterValidator(lambda text: _short(SecretStr(text)).get_secret_value()),
]
Password = Annotated[
    SecretStr,
    AfterValidator(_short),
    PlainSerializer(lambda _: MASK, return_type=str, when_used="json"),
]
Target = Annotated[Text, Field(min_length=1, max_length=300)]


class ProxyFields(Wire):
    """An outbound proxy. `direct` says that this level's calls go through none, whatever a less specific
    level says; it has neither host nor login.
    """

    type: Scheme = Field(description="`http` makes tunnels with CONNECT.")
    host: Host | None = None
    port: Annotated[StrictInt, Field(ge=1, le=65_535)] | None = None
    username: Username | None = None
    password: Password | None = Field(
        None, description="Sealed at rest, shown as `***`; sent as `***` it keeps the stored one."
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        named = (self.host, self.port, self.username, self.password)
        if self.type == DIRECT:
            if any(each is not None for each in named):
                raise PydanticCustomError(
                    "direct", "must have no host, port or login while type is `direct`"
                )
        elif self.host is None or self.port is None:
            raise PydanticCustomError("proxy", "must have a host and a port")
        if self.password is not None and self.username is None:
            raise PydanticCustomError("login", "must have a username with the password")
        return self


class ProxyChange(Wire):
    """The proxy that a level is to have; null takes it back. `id` is a catalogue id, a node's id or prefix
    (`provider`), a combo's id or name (`combo`) or a key's id (`key`).
    """

    level: Level = "global"
    id: Target | None = None
    proxy: ProxyFields | None


class ProxyEntry(Wire):
    """The proxy of one level."""

    level: Level
    id: str | None
    proxy: ProxyFields | None


class ProxyView(ProxyEntry):
    """The proxy of the level that was asked for, and those of all."""

    configured: list[ProxyEntry]


class ProxyTest(Wire):
    """Which proxy is tried: the one that is sent, or the stored one of a level. `url` is read through it;
    at the level `provider` it may be left out and is the provider's own address.
    """

    level: Level = "global"
    id: Target | None = None
    proxy: ProxyFields | None = None
    url: BaseUrl | None = None


TestErrorKind = Literal["proxy_failed", "upstream_refused", "upstream_timeout"]


class ProxyTested(Wire):
    """`success` means that the proxy connected to the address and something answered there, whatever the answer
    was. `publicIp` is present only if the answer consists of an address.
    """

    success: bool
    public_ip: str | None
    latency_ms: int
    proxy_url: str
    status_code: int | None
    error_kind: TestErrorKind | None
    error: str | None
