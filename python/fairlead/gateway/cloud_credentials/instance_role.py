"""The role of an EC2 instance, by its metadata service (IMDSv2), with the variables of AWS's SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from fairlead.gateway.cloud_credentials.fixed_address import FixedAddress
from fairlead.gateway.cloud_credentials.obtained import (
    NotObtained,
    Obtained,
    aws_keys,
    json_object,
)

NAME: Final = "The instance metadata service"
_ADDRESSES: Final = {"ipv4": "http://169.254.169.254", "ipv6": "http://[fd00:ec2::254]"}
_ROLES: Final = "/latest/meta-data/iam/security-credentials/"
_LIFETIME_S: Final = "21600"


async def from_instance(environment: Mapping[str, str]) -> Obtained:
    """The temporary keys of the instance's role; `NotObtained` when there are none. Version 1 of the service, which
    needs no token, is not used.
    """
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        raise NotObtained("AWS_EC2_METADATA_DISABLED forbids the instance metadata service.")
    mode = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv4").lower()
    address = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _ADDRESSES.get(mode)
    if address is None:
        raise NotObtained("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE must be IPv4 or IPv6.")
    service = FixedAddress(NAME, address)
    lifetime = {"x-aws-ec2-metadata-token-ttl-seconds": _LIFETIME_S}
    token = await _fetched(service, "/latest/api/token", lifetime, "PUT")
    headers = {"x-aws-ec2-metadata-token": _header(token)}
    roles = (await _fetched(service, _ROLES, headers)).decode(errors="replace").split()
    if not roles:
        raise NotObtained("The instance has no role.")
    answer = await _fetched(service, _ROLES + quote(roles[0], safe=""), headers)
    document = json_object(answer, NAME)
    if document.get("Code", "Success") != "Success":
        raise NotObtained(f"{NAME} gave no keys for the instance's role.")
    return aws_keys(document, NAME)


async def _fetched(
    service: FixedAddress, path: str, headers: dict[str, str], method: str = "GET"
) -> bytes:
    status, body, _ = await service.ask(path, headers, method)
    if status == 404 and path == _ROLES:
        raise NotObtained("The instance has no role.")
    if status != 200:
        raise NotObtained(f"{NAME} answered {status}.")
    return body


def _header(token: bytes) -> str:
    text = token.decode("ascii", errors="replace").strip()
    if not text or not text.isascii() or not text.isprintable():
        raise NotObtained(f"{NAME} answered without a token.")
    return text
