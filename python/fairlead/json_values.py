"""How many values a JSON text holds, told before it is read: each becomes an object in memory, many times as large as
the two bytes that it may be written with.
"""

from __future__ import annotations

import re
from typing import Final

VALUES_MAX: Final = 250_000

# A string, or what is left of one that never ends: so every quote is passed once, whatever the text is.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


def has_too_many_values(text: bytes, most: int = VALUES_MAX) -> bool:
    """Whether the text holds more than so many values; in linear time, and without reading it."""
    if _marks(text) <= most:
        return False
    # Prose is full of commas: those in strings are none.
    return _marks(_STRING.sub(b"", text)) > most


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")
