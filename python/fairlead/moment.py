"""Timestamps: UTC milliseconds in storage, ISO 8601 in UTC with milliseconds in the API."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
LATEST: Final = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
"""No later moment has a date in UTC."""


def now_ms() -> int:
    """The wall clock in UTC milliseconds."""
    return time.time_ns() // 1_000_000


def moment_of(ms: int) -> datetime:
    """Converts UTC milliseconds to a `datetime`."""
    return EPOCH + ms * MILLISECOND


def ms_of(moment: datetime) -> int:
    """Converts a `datetime` to UTC milliseconds, rounded down."""
    return (moment - EPOCH) // MILLISECOND


LATEST_MS: Final = ms_of(LATEST)


def iso(moment: datetime) -> str:
    """Formats a `datetime` as `2027-01-31T12:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# A timestamp in a response.
Time = Annotated[datetime, PlainSerializer(iso, when_used="json")]


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


# A timestamp in a request.
Moment = Annotated[datetime, BeforeValidator(_parse_moment), PlainSerializer(iso, when_used="json")]
