"""Ids that grow with time, so that the newest rows lie together and a page is read by id."""

from __future__ import annotations

import secrets


def ordered_id(at_ms: int) -> str:
    """A unique id of 32 hexadecimal digits; ids of later moments (UTC milliseconds) are greater."""
    return f"{at_ms:012x}{secrets.token_hex(10)}"
