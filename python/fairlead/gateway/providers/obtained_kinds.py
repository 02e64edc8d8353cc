"""The kinds of `authType` whose credential the gateway obtains itself, and where each may be sent."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Final

from fairlead.errors import InvalidRequest
from fairlead.net.url import split_url

# Hosts that a credential of the machine may be sent to, by the end of their names.
_AWS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_GOOGLE: Final = (".googleapis.com",)


@dataclass(frozen=True, slots=True)
class ObtainedKind:
    """`auth` is the `auth` of providers that accept it, `holder` the member of `Credentials` that holds what was
    obtained. `hosts` bounds where a credential of the machine itself is sent; None for one of an operator.
    """

    auth: str
    holder: str
    hosts: tuple[str, ...] | None = None


OBTAINED: Final = {
    "aws-profile": ObtainedKind("aws-sigv4", "aws", _AWS),
    "aws-web-identity": ObtainedKind("aws-sigv4", "aws", _AWS),
    "aws-instance": ObtainedKind("aws-sigv4", "aws", _AWS),
    "aws-container": ObtainedKind("aws-sigv4", "aws", _AWS),
    "google-metadata": ObtainedKind("google-service-account", "api_key", _GOOGLE),
    "entra": ObtainedKind("api-key", "api_key"),
}
# The fields of `providerSpecificData` that decide which credential is obtained.
_DECISIVE: Final = ("aws_profile", "role_arn", "region")


def obtained_kind(auth_type: str) -> ObtainedKind | None:
    """The kind, if the gateway obtains credentials of this `authType`."""
    return OBTAINED.get(auth_type)


def decisive(specific: dict[str, Any]) -> list[Any]:
    """The values that decide which credential is obtained: after a change of one it is obtained anew."""
    return [specific.get(name) for name in _DECISIVE]


def check_host(auth_type: str, specific: dict[str, Any]) -> None:
    """`InvalidRequest` for a `baseUrl` to which a credential of the machine would be sent although it is neither the
    cloud's nor in a private network.
    """
    kind, base_url = OBTAINED.get(auth_type), specific.get("base_url")
    if kind is None or kind.hosts is None or base_url is None:
        return
    host = (split_url(base_url).hostname or "").lower()
    if not host.endswith(kind.hosts) and not _is_private(host):
        known = " or ".join(f"*{each}" for each in kind.hosts)
        raise InvalidRequest(
            f"providerSpecificData.baseUrl must be at {known} or a private address while authType is "
            f"`{auth_type}`: the machine's own credential is sent there.",
            param="providerSpecificData.baseUrl",
        )


def _is_private(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_private or address.is_loopback
