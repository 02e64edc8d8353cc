"""The body of a call that begins an interaction. Fields without an equivalent in a response are
refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator
from pydantic_core import PydanticCustomError

from fairlead.gateway.google import GoogleWire
from fairlead.records.service_jobs import WebhookConfig

TOOLS_MAX: Final = 1_000
LABELS_MAX: Final = 16

Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]


class FunctionTool(GoogleWire):
    """A function that the model may call."""

    type: Literal["function"]
    name: Annotated[StrictStr, Field(min_length=1, max_length=256)]
    description: StrictStr | None = None
    parameters: dict[str, Any] | None = None


class AllowedTools(GoogleWire):
    """Which functions may be called: one, for a response has a word for that alone."""

    mode: Literal["auto", "any", "none", "validated"] = "any"
    tools: Annotated[list[StrictStr], Field(min_length=1, max_length=1)]


class ToolChoice(GoogleWire):
    """The function that is to be called."""

    allowed_tools: AllowedTools


class Generation(GoogleWire):
    """How it is to be answered."""

    temperature: Number | None = None
    top_p: Number | None = None
    max_output_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    thinking_level: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None
    thinking_summaries: Literal["auto", "none"] | None = None
    tool_choice: Literal["auto", "any", "none", "validated"] | ToolChoice | None = None


class TextFormat(GoogleWire):
    """The form of the answer's text."""

    type: Literal["text"] = "text"
    mime_type: Literal["application/json", "text/plain"] | None = None
    json_schema: Annotated[dict[str, Any] | None, Field(alias="schema")] = None


class InteractionRequest(GoogleWire):
    """The body."""

    model: Annotated[StrictStr, Field(min_length=1, max_length=300)]
    input: Annotated[StrictStr | dict[str, Any] | list[dict[str, Any]], Field(union_mode="smart")]
    background: StrictBool = False
    system_instruction: StrictStr | None = None
    generation_config: Generation | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=TOOLS_MAX)] | None = None
    response_format: TextFormat | list[TextFormat] | None = None
    response_modalities: list[Literal["text"]] | None = None
    previous_interaction_id: Annotated[StrictStr, Field(max_length=300)] | None = None
    labels: Annotated[dict[StrictStr, StrictStr], Field(max_length=LABELS_MAX)] | None = None
    store: StrictBool = True
    stream: StrictBool = False
    webhook_config: WebhookConfig | None = None

    @field_validator("store", mode="after")
    @classmethod
    def _check_store(cls, store: bool) -> bool:
        if not store:
            raise PydanticCustomError("store", "must be true or left out: it is read later")
        return store

    @field_validator("response_format", mode="after")
    @classmethod
    def _one(cls, formats: TextFormat | list[TextFormat] | None) -> TextFormat | None:
        if isinstance(formats, list):
            if len(formats) != 1:
                raise PydanticCustomError("formats", "must be one format")
            return formats[0]
        return formats
