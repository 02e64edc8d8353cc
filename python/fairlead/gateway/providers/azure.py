"""The addresses of Azure OpenAI: its API without versions, and the one whose URLs name a version and a deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fairlead.errors import InvalidRequest
from fairlead.net.url import split_url

_FIELDS: Final = {"api_version": "apiVersion", "deployments": "deployments"}
_WITHOUT_VERSION: Final = "/v1"
_ROOT: Final = "/openai"


@dataclass(frozen=True, slots=True)
class AzureAddress:
    """`base_url` is followed by the path of a call; with a version, by that of a deployment."""

    base_url: str
    models_url: str
    api_version: str | None


def azure_endpoint(url: str, version: str | None) -> AzureAddress:
    """The addresses of a resource, for the API with this version or without one. The URL is that of the API without
    versions, or the endpoint that Azure's portal shows, with or without `/openai` and `/v1`.
    """
    base_url = url.rstrip("/")
    if not split_url(base_url).path:
        base_url += _ROOT + _WITHOUT_VERSION
    if version is None:
        if base_url.endswith(_ROOT):
            base_url += _WITHOUT_VERSION
        return AzureAddress(base_url, f"{base_url}/models", None)
    base_url = base_url.removesuffix(_WITHOUT_VERSION)
    return AzureAddress(base_url, f"{base_url}/models?api-version={version}", version)


def refuse_azure_fields(name: str, specific: dict[str, Any]) -> None:
    """`InvalidRequest` for a field of Azure's at another provider."""
    for field, spelled in _FIELDS.items():
        if specific.get(field) is not None:
            raise InvalidRequest(
                f"providerSpecificData.{spelled} is for Azure's providers; {name} has no deployments.",
                param=f"providerSpecificData.{spelled}",
            )
