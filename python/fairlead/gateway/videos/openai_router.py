"""`/v1/videos`: videos in OpenAI's words. One belongs to the key that began it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

import httpx
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from fairlead.calls.cost_header import lane_cost_header
from fairlead.calls.own_relay import on_behalf_of, relay_client
from fairlead.errors import (
    Conflict,
    InvalidRequest,
    NotFound,
    UpstreamRefused,
    UpstreamTimeout,
)
from fairlead.gateway.files.contents import new_id
from fairlead.gateway.files.google_router import send_video
from fairlead.gateway.list_ends import list_ends
from fairlead.gateway.owner import OwnerDep
from fairlead.gateway.videos.creation import NewVideo, start_video
from fairlead.gateway.videos.openai_request import VideoCreate, openai_request, remix_request
from fairlead.gateway.videos.openai_view import error_of, video_view
from fairlead.gateway.videos.provider import delete_at
from fairlead.gateway.videos.table import (
    Operation,
    VideoFile,
    delete_video,
    files_of,
    find_video,
    list_videos,
)
from fairlead.gateway.videos.targets import (
    CHOICE_HEADER,
    OPENAI,
    VideoTarget,
    read_choice,
    target_of,
    targets_of,
)
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.store.table import Page

router = APIRouter(prefix="/v1/videos", tags=["video"])

REMIX_DEADLINE_S: Final = 58.0
LIST_MAX: Final = 100


@router.post("", summary="Start a video from a prompt")
@router.post(
    "/generations",
    summary="Start a video from a prompt, by its other name",
    operation_id="video_generations",
)
async def create(
    fields: VideoCreate, request: Request, services: ServicesDep, owner: OwnerDep, head: Response
) -> dict[str, Any]:
    """Uses a connection in OpenAI's or Gemini's dialect that serves the model. You can also send a form, with the
    picture as its file `input_reference`.
    """
    sealer, choice = services.state.sealer, read_choice(request.headers.get(CHOICE_HEADER, ""))
    video_request = openai_request(fields)

    def find(con: Connection) -> tuple[list[VideoTarget], Operation | None]:
        targets = targets_of(con, sealer, choice)
        if fields.remixed_from_video_id is None:
            return targets, None
        source = find_video(con, fields.remixed_from_video_id, owner)
        return [each for each in targets if each.connection_id == source.connection_id], source

    targets, source = await services.state.read(find)
    if source is not None:
        _check_remix(fields, source, targets)
        video_request = remix_request(fields, source.provider_operation)
    video = NewVideo(new_id("video_"), owner, fields.model, video_request, fields.to_text())
    operation, index = await start_video(services, targets, video)
    head.headers.update(lane_cost_header(index))
    return video_view(operation)


def _check_remix(fields: VideoCreate, source: Operation, targets: list[VideoTarget]) -> None:
    """The price of a remix is that of its source's model and length, so they must be said as they are."""
    shown = video_view(source)
    if shown["status"] != "completed":
        raise Conflict(f"The video {source.id} is not completed, so it cannot be changed yet.")
    for name, value in (("model", fields.model), ("seconds", str(fields.seconds))):
        if value != shown[name]:
            raise InvalidRequest(
                f"{name} must be that of the video which is changed: {shown[name]}.", param=name
            )
    if not targets:
        raise InvalidRequest(
            "The connection that made the video does not serve this call, and no other knows it.",
            param="remixed_from_video_id",
        )
    if targets[0].endpoint.dialect != OPENAI:
        raise InvalidRequest(
            "The provider that made the video changes none: begin a new one.",
            param="remixed_from_video_id",
        )


class Remix(BaseModel):
    """The requested change."""

    model_config = ConfigDict(extra="forbid")

    prompt: Annotated[StrictStr, Field(min_length=1, max_length=32_000)]


@router.post("/{video_id}/remix", summary="Start a video that changes another")
async def remix(video_id: str, body: Remix, services: ServicesDep, owner: OwnerDep) -> Response:
    """By the connection that made it, of its model and length, at their price."""
    source = await services.state.read(lambda con: find_video(con, video_id, owner))
    shown = video_view(source)
    fields = {
        **{name: shown[name] for name in ("model", "seconds", "size") if shown[name] is not None},
        "prompt": body.prompt,
        "remixed_from_video_id": video_id,
    }
    # Through the relay, as the key: there its limits are held and the price is reserved.
    try:
        async with asyncio.timeout(REMIX_DEADLINE_S), relay_client(services.config) as client:
            answer = await client.post(
                "/v1/videos", json=fields, headers=on_behalf_of(services.config, owner)
            )
    except TimeoutError:
        raise UpstreamTimeout(
            f"The video was not started within {REMIX_DEADLINE_S:g} s; it may be all the same."
        ) from None
    except httpx.HTTPError:
        raise UpstreamRefused("The relay did not answer.") from None
    passed = ("retry-after", "content-type")
    headers = {name: answer.headers[name] for name in passed if name in answer.headers}
    return Response(answer.content, answer.status_code, headers)


@router.get("", summary="The caller's videos")
async def videos(
    services: ServicesDep,
    owner: OwnerDep,
    after: Annotated[str | None, Query(min_length=1, max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=LIST_MAX)] = 20,
    order: Literal["asc", "desc"] = "desc",
) -> dict[str, Any]:
    """Newest first unless `order` is `asc`; `after` is the id of the last one seen."""
    found, has_more = await services.state.read(
        lambda con: list_videos(con, owner, Page(after, limit, order))
    )
    shown = [video_view(each) for each in found]
    ends = list_ends([each["id"] for each in shown])
    return {"object": "list", "data": shown, **ends, "has_more": has_more}


@router.get("/{video_id}", summary="One video and how far it is")
async def video(video_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`status` is `queued`, `in_progress`, `completed` or `failed`."""
    return video_view(await services.state.read(lambda con: find_video(con, video_id, owner)))


@router.get("/{video_id}/content", summary="A video that was made, as bytes")
async def content(
    video_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    variant: Literal["video", "thumbnail", "spritesheet"] = "video",
) -> Response:
    """Read from its provider during the download; pictures of it only if the provider makes them."""
    operation, file, target = await _found(services, video_id, owner)
    if file is None:
        error = None if operation.ended_at_ms is None else error_of(operation)
        reason = "is not completed yet" if error is None else f"has failed: {error['message']}"
        raise NotFound(f"The video {reason}", param="video_id")
    if target is None:
        raise NotFound(
            "The connection that made the video was deleted, so the video cannot be read any more."
        )
    if variant == "video":
        return await send_video(services, target, file)
    if target.endpoint.dialect != OPENAI:
        raise InvalidRequest(
            "variant must be `video`: the provider makes no other.", param="variant"
        )
    return await send_video(services, target, file, f"?variant={variant}")


@router.delete("/{video_id}", summary="Delete a video that has ended")
async def delete(video_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """At its provider too, where that can be asked to."""
    operation, _, target = await _found(services, video_id, owner)
    if operation.ended_at_ms is None:
        raise Conflict("The video is being made: wait for its end.")
    is_there = operation.provider_operation and target is not None
    if is_there and target is not None and target.endpoint.dialect == OPENAI:
        await delete_at(target, operation.provider_operation)
    await services.state.record(lambda con: delete_video(con, video_id, owner))
    return {"id": video_id, "object": "video.deleted", "deleted": True}


async def _found(
    services: ServicesDep, video_id: str, owner: str
) -> tuple[Operation, VideoFile | None, VideoTarget | None]:
    sealer = services.state.sealer

    def find(con: Connection) -> tuple[Operation, VideoFile | None, VideoTarget | None]:
        operation = find_video(con, video_id, owner)
        files = files_of(con, video_id, owner)
        target = target_of(con, sealer, operation.connection_id, operation.proxy)
        return operation, files[0] if files else None, target

    return await services.state.read(find)
