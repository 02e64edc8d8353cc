"""Timeouts of a provider, in milliseconds. None of them limits the total time of a stream."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictInt

from fairlead.wire import Wire

LONGEST_MS = 3_600_000

# The relay's defaults, for timeouts that neither node nor connection sets.
DEFAULTS_MS = {
    "connect_ms": 5_000,
    "header_ms": 120_000,
    "first_token_ms": 120_000,
    "idle_ms": 300_000,
    "answer_ms": 600_000,
}

Milliseconds = Annotated[StrictInt, Field(ge=50, le=LONGEST_MS)]


class Timeouts(Wire):
    """A timer that is absent or null has its default."""

    connect_ms: Annotated[StrictInt, Field(ge=50, le=60_000)] | None = Field(
        None, description="Name, connection and TLS together."
    )
    header_ms: Milliseconds | None = Field(
        None, description="Request sent to headers, for streams."
    )
    first_token_ms: Milliseconds | None = Field(
        None, description="Headers to the first byte of a stream."
    )
    idle_ms: Milliseconds | None = Field(None, description="Silence inside a stream or an answer.")
    answer_ms: Milliseconds | None = Field(
        None, description="Request sent to headers, for plain answers."
    )


def effective_timeouts(*closer_first: dict[str, int]) -> dict[str, int]:
    """Every timeout: from the first of the given that sets it, else its default."""
    merged = dict(DEFAULTS_MS)
    for given in reversed(closer_first):
        merged.update(given)
    return merged
