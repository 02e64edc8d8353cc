"""A role by web identity, as EKS gives it to service accounts: a token in a file, exchanged at STS."""

from __future__ import annotations

from typing import Final

from fairlead.gateway.cloud_credentials.obtained import NotObtained, Obtained
from fairlead.gateway.cloud_credentials.security_token_service import Role, TokenService
from fairlead.gateway.cloud_credentials.small_file import read_small

_FILE: Final = "AWS_WEB_IDENTITY_TOKEN_FILE"


async def from_web_identity(service: TokenService, role_arn: str | None) -> Obtained:
    """The keys of a role for the token of `AWS_WEB_IDENTITY_TOKEN_FILE`: of `role_arn`, else of `AWS_ROLE_ARN`.
    The file's path comes from the environment alone, so that no caller of the API can have another file sent.
    """
    path = service.environment.get(_FILE)
    arn = role_arn or service.environment.get("AWS_ROLE_ARN")
    if not path:
        raise NotObtained(f"{_FILE} is not set: there is no token to exchange.")
    if not arn:
        raise NotObtained("Neither providerSpecificData.roleArn nor AWS_ROLE_ARN names a role.")
    name = service.environment.get("AWS_ROLE_SESSION_NAME") or "fairlead"
    return await exchange_file(service, Role(arn, name), path, _FILE)


async def exchange_file(service: TokenService, role: Role, path: str, source: str) -> Obtained:
    """The keys of a role for the token in a file. The file is read each time, because its token is rotated."""
    token = (await read_small(path, source)).strip()
    if not token:
        raise NotObtained(f"The file of {source} is empty.")
    return await service.for_web_identity(role, token)
