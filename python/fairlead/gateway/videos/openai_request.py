"""A video as OpenAI's clients ask for it, and as it is said to a provider: the same form, or Gemini's
`predictLongRunning`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Annotated, Any, Final

import httpx
import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from fairlead import _core
from fairlead.errors import InvalidRequest
from fairlead.gateway.videos.provider import ProviderCall, VideoRequest
from fairlead.gateway.videos.targets import OPENAI, VideoTarget

# OpenAI's documentation: what is made where nothing is said. The relay reserves by the same figure.
USUAL_SECONDS: Final = 4
_PICTURE = re.compile(r"data:(image/(?:png|jpeg|webp));base64,([A-Za-z0-9+/]+={0,2})")
# Valid names of form fields: a name with brackets would be a member of another field.
_FIELD = re.compile(r"[A-Za-z0-9_.-]{1,100}")
# Other services' names of how much is made. The price is reserved by `seconds` and one video alone.
_AMOUNTS: Final = frozenset(
    {"n", "count", "duration", "duration_seconds", "durationseconds", "length", "num_videos"}
    | {"number_of_videos", "numberofvideos", "sample_count", "samplecount", "num_frames", "frames"}
)
# What Gemini's models make, by size.
_GEMINI_SIZES: Final = {
    "1280x720": ("16:9", "720p"),
    "720x1280": ("9:16", "720p"),
    "1920x1080": ("16:9", "1080p"),
    "1080x1920": ("9:16", "1080p"),
}


class Picture(BaseModel):
    """A picture that the video begins with: a `https` address, or a data URL."""

    model_config = ConfigDict(extra="forbid")

    image_url: Annotated[StrictStr, Field(min_length=1, max_length=24 * 1024 * 1024)]


class VideoCreate(BaseModel):
    """A video to be made. Further members that are texts, numbers or booleans go to providers in OpenAI's
    dialect as they are, but for those that say by another name how much is made: they are refused.
    """

    model_config = ConfigDict(extra="allow")

    model: Annotated[StrictStr, Field(min_length=1, max_length=300)]
    prompt: Annotated[StrictStr, Field(min_length=1, max_length=32_000)]
    seconds: Annotated[int, Field(ge=1, le=3600)] = Field(
        USUAL_SECONDS, description="Also in digits as a text."
    )
    size: Annotated[StrictStr, Field(pattern=r"^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$")] | None = Field(
        None,
        description="Width and height, such as `1280x720`; what is usual at the provider if left out.",
    )
    input_reference: Picture | None = None
    remixed_from_video_id: Annotated[StrictStr, Field(min_length=1, max_length=64)] | None = Field(
        None,
        description="A video of the caller that this one changes, of the same model and length.",
    )

    def to_text(self) -> str:
        """The request as JSON text to be stored, without the picture."""
        fields = self.model_dump(include={"prompt", "seconds", "size", "remixed_from_video_id"})
        return orjson.dumps(fields).decode()

    def further(self) -> dict[str, str]:
        """The members that only a provider knows, as texts; `InvalidRequest` for one that is no plain value or that
        says how much is made.
        """
        texts = {}
        for name, value in (self.model_extra or {}).items():
            if value is None:
                continue
            if name.lower() in _AMOUNTS or not _FIELD.fullmatch(name):
                raise InvalidRequest(
                    f"{name[:100]} is not taken: a request makes one video, as long as `seconds` says, and names of "
                    "further fields have no brackets.",
                    param=name[:100],
                )
            if not isinstance(value, str | int | float):
                raise InvalidRequest(
                    f"{name} must be a text, a number or a boolean.", param=name[:100]
                )
            # An integer of any size: a number of JSON may have more digits than 64 bits hold.
            texts[name] = value if isinstance(value, str) else json.dumps(value)
        return texts


def openai_request(request: VideoCreate) -> VideoRequest:
    """The video in the words of whichever provider is asked."""
    further = request.further()

    def call(target: VideoTarget) -> ProviderCall:
        if target.endpoint.dialect == OPENAI:
            return _as_form(request, target.model, further)
        return _as_prediction(request, target.model)

    return call


def remix_request(request: VideoCreate, provider_id: str) -> VideoRequest:
    """A change of the video that a provider in OpenAI's dialect knows by this name."""
    content = orjson.dumps({"prompt": request.prompt})

    def call(_: VideoTarget) -> ProviderCall:
        return ProviderCall(f"/videos/{provider_id}/remix", content, "application/json", "id")

    return call


def _as_form(request: VideoCreate, model: str, further: dict[str, str]) -> ProviderCall:
    """As OpenAI's own clients send it, with or without a file."""
    fields = {**further, "model": model, "prompt": request.prompt, "seconds": str(request.seconds)}
    if request.size is not None:
        fields["size"] = request.size
    parts: list[tuple[str, Any]] = [(name, (None, text)) for name, text in fields.items()]
    if request.input_reference is not None:
        picture = _picture(request.input_reference.image_url)
        if picture is None:
            parts.append(("input_reference[image_url]", (None, request.input_reference.image_url)))
        else:
            kind, content = picture
            name = f"reference.{kind.partition('/')[2]}"
            parts.append(("input_reference", (name, content, kind)))
    # Written to nowhere: httpx is what puts forms together.
    form = httpx.Request("POST", "http://form.invalid", files=parts)
    return ProviderCall("/videos", form.read(), form.headers["content-type"], "id")


def _as_prediction(request: VideoCreate, model: str) -> ProviderCall:
    instance: dict[str, Any] = {"prompt": request.prompt}
    parameters: dict[str, Any] = {"durationSeconds": request.seconds}
    if request.size is not None:
        found = _GEMINI_SIZES.get(request.size)
        if found is None:
            raise InvalidRequest(
                f"size must be one of {', '.join(_GEMINI_SIZES)} for this model.", param="size"
            )
        parameters["aspectRatio"], parameters["resolution"] = found
    if request.input_reference is not None:
        picture = _picture(request.input_reference.image_url)
        if picture is None:
            raise InvalidRequest(
                "input_reference must be the picture itself for this model: a file of the form, or a data URL of "
                "image/png, image/jpeg or image/webp.",
                param="input_reference",
            )
        kind, content = picture
        encoded = base64.b64encode(content).decode()
        instance["image"] = {"bytesBase64Encoded": encoded, "mimeType": kind}
    body = {"instances": [instance], "parameters": parameters}
    path = f"/{_core.model_address(model)}:predictLongRunning"
    return ProviderCall(path, orjson.dumps(body), "application/json", "name")


def _picture(url: str) -> tuple[str, bytes] | None:
    """The type and bytes of a data URL; None of another address. `InvalidRequest` for one that cannot be read."""
    if not url.startswith("data:"):
        if not url.startswith("https://"):
            raise InvalidRequest(
                "input_reference.image_url must be a data URL or an https address.",
                param="input_reference.image_url",
            )
        return None
    found = _PICTURE.fullmatch(url)
    try:
        if found is not None:
            return found[1], base64.b64decode(found[2], validate=True)
    except binascii.Error:
        pass
    raise InvalidRequest(
        "input_reference.image_url must be base64 of image/png, image/jpeg or image/webp.",
        param="input_reference.image_url",
    )
