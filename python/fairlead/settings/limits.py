"""Limits on open requests and connections, and on their waits."""

from __future__ import annotations

from pydantic import Field

from fairlead.settings.group import SettingsGroup


class LimitFields(SettingsGroup):
    """Counts, and times in milliseconds."""

    max_open_streams: int = Field(
        10_000, ge=1, le=1_000_000, description="Open streams; more are answered 503."
    )
    max_in_flight: int = Field(
        10_000, ge=1, le=1_000_000, description="Requests at once; more are answered 503."
    )
    heartbeat_ms: int = Field(
        15_000, ge=100, le=600_000, description="Silence before a stream gets a comment."
    )
    drain_ms: int = Field(
        30_000, ge=0, le=3_600_000, description="How long a stop waits for what is in flight."
    )
    drain_delay_ms: int = Field(
        0,
        ge=0,
        le=600_000,
        description="How long a stopping node still serves requests while `/readyz` reports draining: "
        "the time that a load balancer needs to notice.",
    )
    control_silence_ms: int = Field(
        60_000,
        ge=3_000,
        le=3_600_000,
        description="How long control may leave its socket unanswered before it is restarted.",
    )
    body_idle_ms: int = Field(
        30_000, ge=100, le=600_000, description="How long a caller may pause in a body."
    )
    socket_life_ms: int = Field(
        7_200_000,
        ge=1_000,
        le=86_400_000,
        description="The longest that a WebSocket (`/v1/ws`, `/v1/realtime`) lasts; then it is closed with 1008.",
    )
    max_connections: int = Field(
        12_000,
        ge=1,
        le=1_000_000,
        description="Connections at once; more are answered 503. With `native` only; never more than "
        "half of the descriptors that the process may have.",
    )
    max_connections_per_address: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="The same of one address (one /64 network in IPv6); 0 for no limit.",
    )
