"""How far this node is behind the log of usage that nodes share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LogLag:
    """`usage.log` sets it with each look, at least every second while the database answers."""

    segments: int | None = None
    """Segments of the log that are not in this node's usage database yet; None before the first look."""
