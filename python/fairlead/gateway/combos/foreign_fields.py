"""Fields of other gateways' combos that fairlead does not have: each is refused with its replacement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.errors import InvalidRequest

_PIPELINES: Final = "assign a pipeline to the combo (PUT /api/context/combos/<id>/assignments)"
_ALWAYS: Final = "every combo has its figures at /api/combos/metrics"

IN_COMBOS: Final[Mapping[str, str]] = {
    "compressionOverride": _PIPELINES,
    "dimensions": "callers of embeddings send `dimensions` themselves",
}
IN_CONFIG: Final[Mapping[str, str]] = {
    "compressionMode": _PIPELINES,
    "compositeTiers": "put combos into combos, each with its own strategy",
    "disableSessionStickiness": "only calls with `X-Session-Id` stay with a target: leave that header out",
    "evalRouting": "compare models with `shadowRouting`",
    "failoverBeforeRetry": "`maxRetries` 0 asks the next target at once, more asks the same one first",
    "fallbackCompressionMode": _PIPELINES,
    "fallbackCompressionThreshold": _PIPELINES,
    "fallbackDelayMs": "the next target is tried at once; `retryDelayMs` and `setRetryDelayMs` are pauses",
    "handoffProviders": "`context-relay` hands over at every provider",
    "maxComboDepth": "combos nest up to ten levels",
    "nestedComboMode": "a nested combo always decides by its own strategy",
    "predictiveTtftMs": "`hedgeDelayMs` says when a slow target is joined by the next",
    "reasoningTokenBufferEnabled": "callers say themselves how many tokens an answer may have",
    "stickyRoundRobinLimit": "write `stickyLimit`",
    "stickyWeightedLimit": "write `stickyLimit`",
    "trackMetrics": _ALWAYS,
    "zeroLatencyOptimizationsEnabled": "`hedging` needs no other switch",
}


def refuse_foreign(body: Any, foreign: Mapping[str, str], place: str = "") -> Any:
    """The body; `InvalidRequest` for the first field that another gateway would read."""
    found = (
        next((name for name in body if name in foreign), None) if isinstance(body, dict) else None
    )
    if found is not None:
        raise InvalidRequest(
            f"{place}{found} is not a field of combos here: {foreign[found]}. Leave it out.",
            param=f"{place}{found}",
        )
    return body
