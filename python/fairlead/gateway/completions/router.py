"""`GET /v1/chat/completions`: clients list stored chat completions there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

router = APIRouter(prefix="/v1/chat/completions", tags=["completions"])


@router.get("", summary="Stored chat completions")
async def completions(
    _after: Annotated[str | None, Query(alias="after", max_length=300)] = None,
    _limit: Annotated[int, Query(alias="limit", ge=1, le=100)] = 20,
    _order: Annotated[Literal["asc", "desc"], Query(alias="order")] = "asc",
    _model: Annotated[str | None, Query(alias="model", max_length=300)] = None,
) -> dict[str, Any]:
    """Always empty: chat completions are not stored here. To read an answer again, use a response (`POST
    /v1/responses`) or a conversation (`POST /v1/conversations`).
    """
    return {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
