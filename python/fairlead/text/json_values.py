"""A bound on the number of values in a JSON text, checked before it is parsed.

Each value becomes a Python object, many times as large as the two bytes that it may be written with.
"""

from __future__ import annotations

import re
from typing import Final

VALUES_MAX: Final = 250_000

# A string, or an unterminated one up to the end of the text: each quote is passed once, so the scan is linear.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


def has_too_many_values(text: bytes, most: int = VALUES_MAX) -> bool:
    """Whether the text holds more than `most` values, in linear time and without parsing."""
    if _marks(text) <= most:
        return False
    # Commas in strings separate no values.
    return _marks(_STRING.sub(b"", text)) > most


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")
