"""The route of the OpenAPI document of scraping. Every router of the room is imported when it is asked for."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from fairlead.scrape.limits.owner import OwnerDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.get("/scrape/openapi.json", summary="The scraping API as an OpenAPI document")
async def description(owner: OwnerDep) -> Response:  # noqa: ARG001 - only a caller with a key may read it
    """OpenAPI 3.0.0, description version 1.0.0."""
    return Response(await asyncio.to_thread(_document), media_type="application/json")


def _document() -> str:
    from fairlead.scrape.routers import described_routes  # noqa: PLC0415 - imports the whole room

    return described_routes()
