"""The role of a container (ECS, EKS Pod Identity), by the credentials endpoint that its environment names."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final

from fairlead.gateway.cloud_credentials.fixed_address import FixedAddress
from fairlead.gateway.cloud_credentials.obtained import (
    NotObtained,
    Obtained,
    aws_keys,
    json_object,
)
from fairlead.gateway.cloud_credentials.small_file import read_small
from fairlead.net.url import split_url

NAME: Final = "The container's credentials endpoint"
_RELATIVE: Final = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
_FULL: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_USUAL: Final = "http://169.254.170.2"
# Addresses that AWS's SDKs call without TLS: those of ECS and of EKS.
_PLAIN: Final = frozenset({"169.254.170.2", "169.254.170.23", "fd00:ec2::23"})


async def from_container(environment: Mapping[str, str]) -> Obtained:
    """The temporary keys of the container's role; `NotObtained` when there are none."""
    url = _url(environment)
    headers = {"accept": "application/json"}
    token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    if path := environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        token = (await read_small(path, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")).strip()
    if token:
        if not token.isascii() or not token.isprintable():
            raise NotObtained("The container's authorization token is not printable ASCII.")
        headers["authorization"] = token
    parts = split_url(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    service = FixedAddress(NAME, f"{parts.scheme}://{parts.netloc}")
    status, body, _ = await service.ask(target or "/", headers)
    if status != 200:
        raise NotObtained(f"{NAME} answered {status}.")
    return aws_keys(json_object(body, NAME), NAME)


def _url(environment: Mapping[str, str]) -> str:
    relative, full = environment.get(_RELATIVE), environment.get(_FULL)
    if relative:
        if not relative.startswith("/"):
            raise NotObtained(f"{_RELATIVE} must begin with `/`.")
        return _USUAL + relative
    if not full:
        raise NotObtained(f"Neither {_RELATIVE} nor {_FULL} is set: this is no such container.")
    try:
        parts = split_url(full)
    except ValueError:
        raise NotObtained(f"{_FULL} is no URL.") from None
    if parts.scheme == "https" and parts.hostname:
        return full
    if parts.scheme == "http" and _is_plain(parts.hostname or ""):
        return full
    raise NotObtained(f"{_FULL} must be https, or at a loopback or container address.")


def _is_plain(host: str) -> bool:
    if host in _PLAIN or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
