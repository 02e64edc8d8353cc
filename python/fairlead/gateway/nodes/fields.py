"""The fields of a node that a caller may set."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from fairlead.gateway.fields import Name, Text
from fairlead.gateway.nodes.address import normalise_base_url, normalise_path
from fairlead.gateway.nodes.headers import check_headers
from fairlead.gateway.nodes.timeouts import Timeouts
from fairlead.gateway.providers.stated_facts import StatedFacts
from fairlead.net.host import AddressRefused

NodeType = Literal["openai-compatible", "anthropic-compatible", "gemini-compatible"]
ApiType = Literal[
    "chat",
    "responses",
    "embeddings",
    "audio-transcriptions",
    "audio-speech",
    "images-generations",
    "rerank",
]

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


def _base_url(text: str) -> str:
    try:
        return normalise_base_url(text)
    except AddressRefused as error:
        raise PydanticCustomError("base_url", str(error)) from None


def _path(text: str) -> str:
    try:
        return normalise_path(text)
    except AddressRefused as error:
        raise PydanticCustomError("path", str(error)) from None


def _icon_url(text: str) -> str:
    # Shown in pages, never fetched by fairlead.
    if (
        re.fullmatch(
            r"https?://[\x21-\x7e]+|data:image/(?:png|svg\+xml|webp);base64,[A-Za-z0-9+/=]+", text
        )
        is None
    ):
        raise PydanticCustomError(
            "icon_url", "must be an http or https URL, or a data URL of an image"
        )
    return text


def _slug(text: str) -> str:
    if _SLUG.fullmatch(text) is None:
        raise PydanticCustomError(
            "slug",
            "must be 1 to 64 small letters, digits, dots, dashes or underscores, "
            "with a letter or digit at either end",
        )
    return text


def _headers(headers: dict[str, str]) -> dict[str, str]:
    try:
        return check_headers(headers)
    except ValueError as error:
        raise PydanticCustomError("headers", str(error)) from None


BaseUrl = Annotated[Text, AfterValidator(_base_url)]
EndpointPath = Annotated[Text, AfterValidator(_path)]
IconUrl = Annotated[Text, Field(max_length=65_536), AfterValidator(_icon_url)]
Prefix = Annotated[Text, AfterValidator(_slug)]
CustomHeaders = Annotated[dict[StrictStr, StrictStr], AfterValidator(_headers)]


class NodeFields(StatedFacts):
    """The optional and nullable fields. Facts about models hold for all models of the node, unless a model's own
    fields override them.
    """

    api_type: ApiType = Field(
        "chat",
        description="Which conversation the node speaks, `chat` or `responses`. Another value says what all of its "
        "models are for, unless a model's own `type` says otherwise.",
    )
    chat_path: EndpointPath | None = Field(
        None, description="Instead of the dialect's own, below baseUrl."
    )
    models_path: EndpointPath | None = Field(
        None, description="Instead of `/models`, below baseUrl."
    )
    icon_url: IconUrl | None = Field(None, description="Refused unless null: no page shows it yet.")
    custom_headers: CustomHeaders | None = Field(
        None, description="Sent with every call; shown masked."
    )
    timeouts: Timeouts | None = None


class NewNode(NodeFields):
    """The body that creates a node."""

    type: NodeType
    name: Name
    prefix: Prefix = Field(description="The part of a model's name before the first slash.")
    base_url: BaseUrl


class NodeChange(NodeFields):
    """The body that changes a node: any of the fields, at least one."""

    type: NodeType | None = None
    name: Name | None = None
    prefix: Prefix | None = None
    base_url: BaseUrl | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_a_field(cls, body: Any) -> Any:
        if body == {}:
            raise PydanticCustomError("no_valid_fields", "No valid fields to update")
        return body

    @field_validator("type", "name", "prefix", "base_url", "api_type", mode="before")
    @classmethod
    def _is_not_null(cls, value: object) -> object:
        if value is None:
            raise PydanticCustomError("not_null", "must not be null; leave it out to keep it")
        return value
