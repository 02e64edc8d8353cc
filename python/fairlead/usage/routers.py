"""The routers of usage. Paths with a variable come after fixed ones."""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.usage.body_router import router as bodies
from fairlead.usage.live_router import router as live
from fairlead.usage.metrics_router import router as metrics
from fairlead.usage.number_router import router as numbers
from fairlead.usage.quota_router import router as quota
from fairlead.usage.refused_callers_router import router as refused_callers
from fairlead.usage.router import router as usage
from fairlead.usage.token_limits.router import router as token_limits
from fairlead.usage.unpriced_router import router as unpriced

ROUTERS: tuple[APIRouter, ...] = (
    usage,
    unpriced,
    refused_callers,
    bodies,
    token_limits,
    quota,
    live,
    metrics,
    numbers,
)
