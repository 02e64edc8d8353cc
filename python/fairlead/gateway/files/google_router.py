"""`/v1beta/files/{id}:download`: files that batches and videos left, for Google's clients."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fairlead.errors import NotFound
from fairlead.gateway.files.router import content_of
from fairlead.gateway.google import google_router
from fairlead.gateway.owner import OwnerDep
from fairlead.gateway.videos.provider import open_video
from fairlead.gateway.videos.table import VideoFile, find_video_file, proxy_of_operation
from fairlead.gateway.videos.targets import VideoTarget, target_of
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

PICTURES = ("image/jpeg", "image/png", "image/webp")


async def download(
    file_id: str, services: ServicesDep, owner: OwnerDep, request: Request
) -> Response:
    """A video, read from its provider during the download, or the answers of a batch."""
    sealer = services.state.sealer

    def find_source(con: Connection) -> tuple[VideoFile | None, VideoTarget | None]:
        file = find_video_file(con, file_id, owner)
        if file is None:
            return None, None
        proxy_id = proxy_of_operation(con, file.operation_id)
        return file, target_of(con, sealer, file.connection_id, proxy_id)

    file, target = await services.state.read(find_source)
    if file is None:
        return await content_of(services, file_id, owner, request.headers.get("range"))
    if target is None:
        raise NotFound(
            "The connection that made the video was deleted, so the video cannot be read any more."
        )
    return await send_video(services, target, file)


async def send_video(
    services: Services, target: VideoTarget, file: VideoFile, query: str = ""
) -> Response:
    """A video, read at its provider as it is sent."""
    kind, size, chunks = await open_video(services.egress, target, file.uri + query)
    if not kind.startswith("video/") and kind not in PICTURES:
        # The content type is the provider's word, so browsers must not show it as a page.
        kind = "application/octet-stream"
    headers = {
        "content-disposition": f"attachment; filename={file.id}",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
        # The download may take as long as the caller needs to read it.
        "x-fairlead-lasting": "1",
        **({} if size is None else {"content-length": str(size)}),
    }
    return StreamingResponse(chunks, headers=headers, media_type=kind)


router = google_router(
    "files",
    (("GET", "/files/{file_id}:download", download, "download", "The result of a job, as bytes"),),
)
