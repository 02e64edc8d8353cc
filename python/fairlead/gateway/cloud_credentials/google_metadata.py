"""The service account of a Google Cloud machine (Compute Engine, GKE, Cloud Run), by its metadata server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.gateway.cloud_credentials.fixed_address import FixedAddress
from fairlead.gateway.cloud_credentials.obtained import (
    NotObtained,
    Obtained,
    bearer_token,
    json_object,
)
from fairlead.moment import now_ms

NAME: Final = "Google's metadata server"
_PATH: Final = "/computeMetadata/v1/instance/service-accounts/default/token"
_SCOPES: Final = "?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fcloud-platform"
_FLAVOR: Final = "Metadata-Flavor"


async def from_google_metadata(environment: Mapping[str, str]) -> Obtained:
    """An access token of the machine's service account; `NotObtained` when there is none. `GCE_METADATA_HOST`
    replaces the address, as in Google's SDKs.
    """
    host = environment.get("GCE_METADATA_HOST") or "169.254.169.254"
    at_ms = now_ms()
    service = FixedAddress(NAME, f"http://{host}")
    status, body, headers = await service.ask(_PATH + _SCOPES, {_FLAVOR: "Google"})
    if headers.get(_FLAVOR) != "Google":
        raise NotObtained(f"The server at {host} is not {NAME}.")
    if status != 200:
        raise NotObtained(f"{NAME} answered {status}.")
    return bearer_token(json_object(body, NAME), at_ms, NAME)
