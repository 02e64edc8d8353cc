"""A video as Google shows it: an operation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from fairlead.gateway.files.contents import new_id
from fairlead.gateway.google import TYPES
from fairlead.gateway.videos.table import Operation, VideoFile

# The path of one of the gateway's URLs; its beginning depends on how the gateway is reached.
_OWN_PATH = re.compile(r"/v1beta/files/(?P<id>[^/:?]+):download\?alt=media\Z")


def operation_view(operation: Operation, base: str) -> dict[str, Any]:
    """The operation as it is now, its videos under `base`, by which its reader reaches the gateway."""
    shown: dict[str, Any] = {"name": f"models/{operation.model}/operations/{operation.id}"}
    if operation.ended_at_ms is None:
        return shown
    shown["done"] = True
    if operation.error is not None:
        return shown | {"error": orjson.loads(operation.error)}
    response = orjson.loads(operation.response or "{}")
    for video in _videos(response.get("generateVideoResponse")):
        if (found := _OWN_PATH.search(str(video.get("uri")))) is not None:
            # The stored address was made without a request, so its base may not be the reader's.
            video["uri"] = video_address(base, found["id"])
    return shown | {"response": response}


def _videos(made: Any) -> Iterator[dict[str, Any]]:
    samples = made.get("generatedSamples") if isinstance(made, dict) else None
    for sample in samples or []:
        video = sample.get("video") if isinstance(sample, dict) else None
        if isinstance(video, dict):
            yield video


def replace_addresses(
    operation: Operation, response: dict[str, Any], origin: str
) -> tuple[dict[str, Any], list[VideoFile]]:
    """A provider's response with the gateway's URLs, because the provider's URLs need its credential; and the videos
    behind them.
    """
    made = response.get("generateVideoResponse")
    if not isinstance(made, dict):
        return {"@type": f"{TYPES}PredictLongRunningResponse"} | response, []
    samples, files = [], []
    for sample in made.get("generatedSamples") or []:
        video = sample.get("video") if isinstance(sample, dict) else None
        uri = video.get("uri") if isinstance(video, dict) else None
        if not isinstance(video, dict) or not isinstance(uri, str):
            samples.append(sample)
            continue
        # Google's client takes the file's name from the address: lower-case letters and digits.
        file = VideoFile(new_id(""), operation.id, operation.owner, operation.connection_id, uri)
        files.append(file)
        samples.append({**sample, "video": {**video, "uri": video_address(origin, file.id)}})
    shown = {**made, "generatedSamples": samples} if samples else made
    return {**response, "generateVideoResponse": shown}, files


def video_address(origin: str, file_id: str) -> str:
    """The address where a key reads its video."""
    return f"{origin}/v1beta/files/{file_id}:download?alt=media"


def event_data(files: list[VideoFile], origin: str) -> dict[str, Any]:
    """The data of an event: the first video's address, under its old and new names."""
    address = video_address(origin, files[0].id)
    return {
        "output_file_uri": address,
        "file_name": f"files/{files[0].id}",
        "video_uri": address,
    }
