"""The member `context` of the snapshot."""

from __future__ import annotations

from typing import Any

from fairlead.gateway.context.table import all_assignments, list_pipelines, own_filters
from fairlead.store.file import Connection
from fairlead.store.operator_settings import OperatorSettings


def compile_context(con: Connection, settings: OperatorSettings) -> dict[str, Any]:
    """For the relay: settings of compression, thinking, the system prompt and windows."""
    thinking: dict[str, Any] = {"mode": settings.thinking_budget_mode}
    if settings.thinking_budget_mode in ("custom", "adaptive"):
        thinking["budget_tokens"] = settings.thinking_budget_tokens
    rtk_level = settings.compression_rtk_level
    return {
        "compression": {
            "mode": settings.compression_mode,
            "automatic_tokens": settings.compression_automatic_tokens,
            "automatic_mode": settings.compression_automatic_mode,
            "pipelines": [
                {"name": each.name, "stages": [stage.model_dump() for stage in each.stages]}
                for each in list_pipelines(con)
            ],
            "assignments": all_assignments(con),
            "languages": settings.compression_languages,
            "rtk_level": "" if rtk_level == "by-mode" else rtk_level,
            "raw_outputs": {
                "limit_bytes": settings.compression_raw_output_bytes,
                "hours": settings.compression_raw_output_hours,
            },
            "filters": [{"sha256": sha256, "toml": toml} for sha256, toml in own_filters(con)],
        },
        "thinking": thinking,
        "system_prompt": {
            "prefix": settings.system_prompt_prefix,
            "suffix": settings.system_prompt_suffix,
        },
        "window": settings.context_window_policy,
    }
