"""Whether API keys are still in force; jobs of a key that is not are ended."""

from __future__ import annotations

from collections.abc import Collection

from fairlead.moment import now_ms
from fairlead.store.file import Connection


def why_out_of_force(con: Connection, key_id: str) -> str | None:
    """The reason why the key is refused everywhere; None while it is in force."""
    return keys_out_of_force(con, [key_id]).get(key_id)


def keys_out_of_force(con: Connection, key_ids: Collection[str]) -> dict[str, str]:
    """Maps each key that is refused everywhere to the reason, in the sentence that its jobs end with."""
    if not key_ids:
        return {}
    rows = con.execute(
        "SELECT w.id, k.id IS NULL, k.is_banned, NOT k.is_active, "
        "k.expires_at_ms IS NOT NULL AND k.expires_at_ms <= ? "
        "FROM (SELECT DISTINCT unnest(?::VARCHAR[]) AS id) w LEFT JOIN keys k ON k.id = w.id",
        [now_ms(), list(key_ids)],
    ).fetchall()
    reasons: dict[str, str] = {}
    for key_id, is_gone, is_banned, is_inactive, is_expired in rows:
        if is_gone:
            reasons[key_id] = "The API key that asked for this was deleted."
        elif is_banned:
            reasons[key_id] = "The API key that asked for this is banned."
        elif is_inactive:
            reasons[key_id] = "The API key that asked for this is not active."
        elif is_expired:
            reasons[key_id] = "The API key that asked for this has expired."
    return reasons
