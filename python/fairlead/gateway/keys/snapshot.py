"""What the relay gets of the keys: hashes and what it enforces."""

from __future__ import annotations

from typing import Any

from fairlead.store.file import Connection

_FIELDS = (
    "id", "name", "hash", "is_active", "is_banned", "expires_at_ms", "model_access_mode",
    "allowed_models", "blocked_models", "allowed_endpoints",
    "allowed_combos", "allow_auto_combos", "catalog_scope", "no_log", "scopes",
)  # fmt: skip
_SELECT = f"SELECT {', '.join(_FIELDS)} FROM keys ORDER BY created_at_ms, id"


def compile_keys(con: Connection) -> list[dict[str, Any]]:
    """Every key, as the snapshot has it. A banned or inactive key is in it, so that it is told
    so.
    """
    rows = con.execute(_SELECT).fetchall()
    return [dict(zip(_FIELDS, row, strict=True)) for row in rows]
