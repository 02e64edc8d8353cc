"""The body of a `batchGenerateContent` call."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, StrictStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from fairlead.gateway.batches.lines import LINES_MAX
from fairlead.gateway.google import GoogleWire
from fairlead.records.service_jobs import WebhookConfig

PRIORITY_MAX: Final = 2**63 - 1


class InlineRequest(GoogleWire):
    """One request, and what comes back beside its answer."""

    request: dict[str, Any]
    metadata: dict[str, Any] | None = None


class InlineRequests(GoogleWire):
    """Requests inside the call."""

    requests: Annotated[list[InlineRequest], Field(min_length=1, max_length=LINES_MAX)]


class InputConfig(GoogleWire):
    """The requests, in one of two ways."""

    requests: InlineRequests | None = None
    file_name: Annotated[StrictStr, Field(min_length=1, max_length=128)] | None = None

    @model_validator(mode="after")
    def _one(self) -> InputConfig:
        if (self.requests is None) == (self.file_name is None):
            raise PydanticCustomError("source", "must have one of requests and fileName")
        return self


class BatchFields(GoogleWire):
    """A batch."""

    display_name: Annotated[StrictStr, Field(max_length=512)] | None = None
    input_config: InputConfig
    model: Annotated[StrictStr, Field(max_length=512)] | None = Field(
        None, description="As in the address, or left out."
    )
    priority: int = Field(
        0,
        ge=-PRIORITY_MAX,
        le=PRIORITY_MAX,
        description="A key's batches with a higher value start first.",
    )
    webhook_config: WebhookConfig | None = None

    @field_validator("priority", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        # Google writes numbers of 64 bits as texts.
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number and not (
            isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal()
        ):
            raise PydanticCustomError("priority", "must be a whole number")
        return value


class GoogleBatchRequest(GoogleWire):
    """The body."""

    batch: BatchFields
