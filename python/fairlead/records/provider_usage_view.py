"""A provider's own figures of a connection's usage, as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from fairlead.moment import Time, moment_of
from fairlead.records.provider_usage import ProviderUsage
from fairlead.wire import Wire


class UsageFigureView(Wire):
    """One figure of the provider's, in millionths of its unit; what it does not tell is null."""

    name: str
    unit: str
    used_micros: int | None
    limit_micros: int | None
    remaining_micros: int | None
    remaining_percent: float | None = Field(
        description="Null unless the provider reports a limit and what remains of it."
    )
    since: Time | None


class ProviderUsageView(Wire):
    """`readAt` is the time of the figures. `error` says why the last request returned no figures, or not all."""

    figures: list[UsageFigureView]
    read_at: Time | None
    asked_at: Time | None
    failures: int
    error: str | None


def show_provider_usage(usage: ProviderUsage) -> ProviderUsageView:
    """The row without its key."""
    return ProviderUsageView.model_construct(
        figures=[
            UsageFigureView.model_construct(
                name=figure.name,
                unit=figure.unit,
                used_micros=figure.used_micros,
                limit_micros=figure.limit_micros,
                remaining_micros=figure.remaining_micros,
                remaining_percent=figure.remaining_percent,
                since=_moment(figure.since_ms),
            )
            for figure in usage.figures
        ],
        read_at=_moment(usage.read_at_ms),
        asked_at=_moment(usage.asked_at_ms),
        failures=usage.failures,
        error=usage.last_error,
    )


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else moment_of(at_ms)
