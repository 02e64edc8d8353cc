"""Obtains the credential of a connection from the source that its `authType` names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx

from fairlead.gateway.cloud_credentials.container_role import from_container
from fairlead.gateway.cloud_credentials.entra import from_entra
from fairlead.gateway.cloud_credentials.google_metadata import from_google_metadata
from fairlead.gateway.cloud_credentials.instance_role import from_instance
from fairlead.gateway.cloud_credentials.machine_variables import machine_variables
from fairlead.gateway.cloud_credentials.obtained import NotObtained, Obtained
from fairlead.gateway.cloud_credentials.security_token_service import TokenService
from fairlead.gateway.cloud_credentials.shared_profile import from_profile
from fairlead.gateway.cloud_credentials.web_identity import from_web_identity
from fairlead.gateway.outbound.table import Proxy
from fairlead.gateway.outbound.tunnel import ProxyFailed
from fairlead.gateway.providers.client import open_client
from fairlead.gateway.providers.credentials import Credentials

# All requests of one source together.
DEADLINE_S: Final = 20.0
_USUAL_REGION: Final = "us-east-1"


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a connection's credential. `proxy` is the route to services outside the machine; the
    metadata services are on the machine's own network and are never asked through a proxy.
    """

    auth_type: str
    specific: dict[str, Any]
    entra: dict[str, str] | None = field(default=None, repr=False)
    proxy: Proxy | None = field(default=None, repr=False)


async def obtain(source: Source, environment: Mapping[str, str] | None = None) -> Obtained:
    """The credential, within a deadline; `NotObtained` says why there is none."""
    variables = machine_variables() if environment is None else environment
    try:
        async with asyncio.timeout(DEADLINE_S), open_client(source.proxy) as client:
            return await _obtain(source, client, variables)
    except TimeoutError:
        raise NotObtained(f"The credential did not come within {DEADLINE_S:g} s.") from None
    except ProxyFailed as error:
        raise NotObtained(str(error)) from None


async def _obtain(
    source: Source, client: httpx.AsyncClient, environment: Mapping[str, str]
) -> Obtained:
    specific = source.specific
    service = TokenService(client, specific.get("region") or _USUAL_REGION, environment)
    match source.auth_type:
        case "aws-profile":
            sources = {
                "Ec2InstanceMetadata": lambda: from_instance(environment),
                "EcsContainer": lambda: from_container(environment),
            }
            name = specific.get("aws_profile") or environment.get("AWS_PROFILE") or "default"
            return await from_profile(service, name, sources)
        case "aws-web-identity":
            return await from_web_identity(service, specific.get("role_arn"))
        case "aws-instance":
            return await from_instance(environment)
        case "aws-container":
            return await from_container(environment)
        case "google-metadata":
            return await from_google_metadata(environment)
        case "entra" if source.entra is not None:
            return await from_entra(client, source.entra, environment)
    raise NotObtained(f"Credentials of the kind `{source.auth_type}` are not obtained.")


def filled(credentials: Credentials, obtained: Obtained) -> Credentials:
    """The credentials of a connection with the one that was obtained."""
    return replace(credentials, aws=obtained.aws, api_key=obtained.token)
