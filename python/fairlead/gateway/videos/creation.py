"""A video is begun at the first of the chosen connections that takes it, and has a row whatever happens meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.gateway.videos.provider import VideoRequest, begin
from fairlead.gateway.videos.runner import VideoRunner
from fairlead.gateway.videos.starts import ProviderOperation, VideoStarts
from fairlead.gateway.videos.table import Operation
from fairlead.gateway.videos.targets import VideoTarget
from fairlead.moment import now_ms
from fairlead.records.service_jobs import Subscribers
from fairlead.store.services import Services

WINDOW_MS: Final = 6 * 3_600_000
"""How long a provider has; the slowest take minutes."""


@dataclass(frozen=True, slots=True)
class NewVideo:
    """A video that somebody asks for. `request_text` is the request in OpenAI's words, a JSON text, where it came in
    them.
    """

    id: str
    owner: str
    model: str
    request: VideoRequest
    request_text: str | None = None


async def start_video(
    services: Services,
    targets: list[VideoTarget],
    video: NewVideo,
    subscribers: Subscribers | None = None,
) -> tuple[Operation, int]:
    """The operation, and the index of its connection in the relay's choice."""
    at_ms, starts = now_ms(), VideoStarts.of(services)
    operation = Operation(
        video.id,
        video.owner,
        video.model,
        targets[0].connection_id,
        "",
        None,
        None,
        at_ms,
        at_ms + WINDOW_MS,
        None,
        request=video.request_text,
    )
    await starts.record_start(operation, subscribers)
    try:
        target, name = await begin(targets, video.request)
    except BaseException:
        await starts.record_refusal(operation)
        raise
    await starts.begin(operation, ProviderOperation(target.connection_id, name, target.proxy_id))
    VideoRunner.of(services).wake()
    return operation, target.index
