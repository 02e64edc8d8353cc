"""`GET /metrics`."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from fairlead.store.services import ServicesDep
from fairlead.usage.telemetry.metrics import CONTENT_TYPE, exposition

router = APIRouter(tags=["monitoring"])


@router.get("/metrics", summary="Metrics in Prometheus' text format")
async def metrics(services: ServicesDep) -> Response:
    """Anybody on this machine may read them; from elsewhere a management credential is needed. See
    docs/reference/metrics.md.
    """
    text = await asyncio.to_thread(exposition, services)
    return PlainTextResponse(text, headers={"content-type": CONTENT_TYPE})
