"""What the bodies of management requests and answers are made of."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from fairlead.moment import EPOCH, LATEST, iso


class Wire(BaseModel):
    """A body: camelCase names only, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class Message(Wire):
    """An answer that has nothing to show."""

    message: str


def _parse_moment(value: object) -> object:
    if isinstance(value, datetime):
        return value
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise PydanticCustomError(
            "moment",
            "must be an ISO 8601 date and time with a time zone, such as 2027-01-31T12:00:00Z",
        )
    if not EPOCH <= moment <= LATEST:
        raise PydanticCustomError("moment", "must be between the years 1970 and 9999, in UTC")
    return moment


# Something to see in tables and logs: no control characters, and not blanks alone.
_NAME = r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0][^\x00-\x1f\x7f-\x9f]*$"

Text = Annotated[str, Field(strict=True)]
Name = Annotated[Text, Field(min_length=1, max_length=200, pattern=_NAME)]
# A moment that a caller sends.
Moment = Annotated[datetime, BeforeValidator(_parse_moment), PlainSerializer(iso, when_used="json")]

# Which part of a list is asked for.
Limit = Annotated[int, Query(ge=1, le=500)]
Offset = Annotated[int, Query(ge=0, le=2**31)]
