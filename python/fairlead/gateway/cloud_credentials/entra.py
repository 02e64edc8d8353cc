"""An application of Microsoft Entra ID: its secret is exchanged for an access token (OAuth client credentials)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import httpx

from fairlead.gateway.cloud_credentials.obtained import (
    NotObtained,
    Obtained,
    bearer_token,
    json_object,
)
from fairlead.gateway.providers.client import exchange
from fairlead.moment import now_ms

NAME: Final = "Microsoft Entra ID"
_AUTHORITY: Final = "https://login.microsoftonline.com"
_SCOPE: Final = "https://cognitiveservices.azure.com/.default"


async def from_entra(
    client: httpx.AsyncClient, app: Mapping[str, str], environment: Mapping[str, str]
) -> Obtained:
    """An access token for Azure's AI services; `NotObtained` when there is none. `AZURE_AUTHORITY_HOST` replaces the
    address, as in Azure's SDKs.
    """
    authority = (environment.get("AZURE_AUTHORITY_HOST") or _AUTHORITY).rstrip("/")
    if "://" not in authority:
        authority = f"https://{authority}"
    form = {
        "grant_type": "client_credentials",
        "client_id": app["client_id"],
        "client_secret": app["client_secret"],
        "scope": _SCOPE,
    }
    at_ms = now_ms()
    try:
        status, body = await exchange(
            client, f"{authority}/{app['tenant_id']}/oauth2/v2.0/token", form
        )
    except httpx.HTTPError as error:
        raise NotObtained(f"{NAME} cannot be reached ({type(error).__name__}).") from None
    if status != 200:
        raise NotObtained(f"{NAME} refused the application with {status}.")
    return bearer_token(json_object(body, NAME), at_ms, NAME)
