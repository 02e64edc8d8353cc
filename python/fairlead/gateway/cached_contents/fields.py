"""The bodies of `/v1beta/cachedContents`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import Field, StrictStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.gateway.google import GoogleWire
from fairlead.moment import ms_of

TTL_DEFAULT_MS: Final = 3_600_000
TTL_MAX_MS: Final = 30 * 86_400_000
_DURATION = re.compile(r"(?P<s>[0-9]{1,9})(?:\.(?P<part>[0-9]{1,9}))?s")

CONTENT_MEMBERS: Final = ("contents", "systemInstruction", "tools", "toolConfig")
"""The stored members of a generateContent request."""


class Expiry(GoogleWire):
    """When a cached content expires: one of the two."""

    ttl: StrictStr | None = None
    expire_time: datetime | None = None

    @field_validator("ttl")
    @classmethod
    def _is_duration(cls, ttl: str | None) -> str | None:
        if ttl is not None and _DURATION.fullmatch(ttl) is None:
            raise PydanticCustomError("ttl", "must be a number of seconds, such as 300s")
        return ttl

    @field_validator("expire_time")
    @classmethod
    def _has_zone(cls, expire_time: datetime | None) -> datetime | None:
        if expire_time is not None and expire_time.tzinfo is None:
            raise PydanticCustomError("expire_time", "must have a time zone")
        return expire_time

    @model_validator(mode="after")
    def _one(self) -> Expiry:
        if self.ttl is not None and self.expire_time is not None:
            raise PydanticCustomError("expiry", "must have one of ttl and expireTime")
        return self

    def at_ms(self, now_ms: int) -> int | None:
        """The moment; None where neither is given. `InvalidRequest` for one in the past or too far away."""
        if self.expire_time is not None:
            at_ms = ms_of(self.expire_time)
        elif self.ttl is not None:
            at_ms = now_ms + int(self.ttl[:-1].partition(".")[0]) * 1000
        else:
            return None
        if not now_ms < at_ms <= now_ms + TTL_MAX_MS:
            raise InvalidRequest("A cached content expires within 30 days.", param="ttl")
        return at_ms


class CachedContentFields(Expiry):
    """A cached content to be stored."""

    model: Annotated[StrictStr, Field(min_length=1, max_length=512)]
    display_name: Annotated[StrictStr, Field(max_length=128)] | None = None
    contents: list[dict[str, Any]] | None = None
    system_instruction: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_config: dict[str, Any] | None = None

    def content(self) -> dict[str, Any]:
        """The members that are stored."""
        members = (self.contents, self.system_instruction, self.tools, self.tool_config)
        return {
            name: value
            for name, value in zip(CONTENT_MEMBERS, members, strict=True)
            if value is not None
        }
