"""`expires_after` of files, in OpenAI's API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt


class ExpiresAfter(BaseModel):
    """The time at which a file is deleted automatically."""

    model_config = ConfigDict(extra="forbid")

    anchor: Literal["created_at"]
    seconds: Annotated[StrictInt, Field(ge=3600, le=30 * 86_400)]
