"""The cache's settings as the snapshot holds them."""

from __future__ import annotations

from typing import Any

from fairlead.store.operator_settings import OperatorSettings

MIB = 1024 * 1024


def compile_cache(settings: OperatorSettings) -> dict[str, Any]:
    """The member `cache` of the snapshot."""
    return {
        "is_enabled": settings.semantic_cache_enabled,
        "ttl_ms": settings.semantic_cache_ttl_ms,
        "memory_bytes": settings.semantic_cache_memory_mb * MIB,
        "disk_bytes": settings.semantic_cache_disk_mb * MIB,
        "shared_bytes": settings.semantic_cache_shared_mb * MIB,
        "wants_vectors": settings.vector_cache_enabled,
        "threshold": settings.vector_cache_threshold,
    }
