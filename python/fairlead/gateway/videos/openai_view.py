"""A video as OpenAI shows it."""

from __future__ import annotations

from typing import Any, Final

import orjson

from fairlead.gateway.videos.table import KEPT_MS, Operation

FAILED: Final = "video_generation_failed"
WITHHELD: Final = "moderation_blocked"


def video_view(operation: Operation) -> dict[str, Any]:
    """The video as it is now. One that its provider made and withheld has failed."""
    request = orjson.loads(operation.request or "{}")
    is_queued = operation.progress == 0 or not operation.provider_operation
    shown: dict[str, Any] = {
        "id": operation.id,
        "object": "video",
        "model": operation.model,
        "status": "queued" if is_queued else "in_progress",
        "progress": operation.progress or 0,
        "created_at": operation.created_at_ms // 1000,
        "completed_at": None,
        "expires_at": None,
        "error": None,
        "prompt": request.get("prompt"),
        "seconds": str(request.get("seconds")),
        "size": request.get("size"),
        "remixed_from_video_id": request.get("remixed_from_video_id"),
    }
    if operation.ended_at_ms is None:
        return shown
    error = error_of(operation)
    if error is not None:
        return {**shown, "status": "failed", "error": error}
    return {
        **shown,
        "status": "completed",
        "progress": 100,
        "completed_at": operation.ended_at_ms // 1000,
        "expires_at": (operation.ended_at_ms + KEPT_MS) // 1000,
    }


def error_of(operation: Operation) -> dict[str, str] | None:
    """Why a video that has ended cannot be read; None where it can."""
    if operation.error is not None:
        message = orjson.loads(operation.error).get("message")
        return {"code": FAILED, "message": str(message)}
    made = orjson.loads(operation.response or "{}").get("generateVideoResponse")
    made = made if isinstance(made, dict) else {}
    if made.get("generatedSamples"):
        return None
    reasons = made.get("raiMediaFilteredReasons")
    reasons_shown = (
        [each for each in reasons if isinstance(each, str)] if isinstance(reasons, list) else []
    )
    message = " ".join(reasons_shown)[:500] or "The provider made no video of this prompt."
    return {"code": WITHHELD, "message": message}
