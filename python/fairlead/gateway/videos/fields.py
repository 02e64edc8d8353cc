"""The body of a `predictLongRunning` call."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from fairlead.gateway.google import GoogleWire
from fairlead.records.service_jobs import WebhookConfig

_SAMPLES_MAX: Final = 16


class GoogleVideoRequest(GoogleWire):
    """A video to be made."""

    instances: Annotated[
        list[dict[str, Any]],
        Field(min_length=1, max_length=_SAMPLES_MAX, description="`prompt`, and pictures."),
    ]
    parameters: Annotated[
        dict[str, Any] | None, Field(description="As the provider knows them.")
    ] = None
    webhook_config: WebhookConfig | None = None

    def for_provider(self) -> dict[str, Any]:
        """The body for the provider: without the webhooks, which are the gateway's."""
        named = {"instances": self.instances}
        return named if self.parameters is None else {**named, "parameters": self.parameters}
