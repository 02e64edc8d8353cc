"""What a call of `predictLongRunning` says."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from fairlead.gateway.google import GoogleWire
from fairlead.store.service_jobs import WebhookConfig

# What a provider makes where nothing is said.
_SECONDS: Final = 8
_SECONDS_MAX: Final = 3600
_SAMPLES_MAX: Final = 16


class VideoAsk(GoogleWire):
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
        """What the provider is sent; who is told of it is ours."""
        named = {"instances": self.instances}
        return named if self.parameters is None else {**named, "parameters": self.parameters}

    def seconds(self) -> int:
        """How many seconds of video are asked for, at least."""
        said = self.parameters or {}
        length = _count(said.get("durationSeconds"), _SECONDS, _SECONDS_MAX)
        samples = _count(said.get("sampleCount", said.get("numberOfVideos")), 1, _SAMPLES_MAX)
        return length * samples * len(self.instances)


def _count(said: Any, usual: int, most: int) -> int:
    if isinstance(said, str) and len(said) <= 9 and said.isascii() and said.isdigit():
        said = int(said)
    is_number = isinstance(said, int | float) and not isinstance(said, bool) and said >= 1
    return min(int(said), most) if is_number else usual
