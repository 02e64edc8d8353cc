"""The routers of usage. Paths with a variable come after fixed ones."""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.usage.live_router import router as live
from fairlead.usage.routes.body_router import router as bodies
from fairlead.usage.routes.metrics_router import router as metrics
from fairlead.usage.routes.number_router import router as numbers
from fairlead.usage.routes.quota_router import router as quota
from fairlead.usage.routes.refused_callers_router import router as refused_callers
from fairlead.usage.routes.router import router as usage
from fairlead.usage.routes.unpriced_router import router as unpriced
from fairlead.usage.token_limits.router import router as token_limits

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
