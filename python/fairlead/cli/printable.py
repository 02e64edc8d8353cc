"""Text of others on a terminal: what would move the cursor or turn the direction of writing is shown as its code."""

from __future__ import annotations

import re
from typing import Final

# C0 and C1 controls and DEL; marks of direction and what is invisible; half characters.
_INVISIBLE: Final = (
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
)
_LINE: Final = re.compile(f"[\x00-\x1f\x7f-\x9f{_INVISIBLE}]")
_TEXT: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_INVISIBLE}]")
_JSON: Final = re.compile(f"[\x7f-\x9f{_INVISIBLE}]")


def printable(text: str) -> str:
    """One line: control characters are written as their code."""
    return _LINE.sub(_code, text)


def printable_text(text: str) -> str:
    """Text of many lines: line feeds and tabs stay."""
    return _TEXT.sub(_code, text)


def printable_json(text: str) -> str:
    """A JSON document, with what JSON leaves as it is in its own escapes: it says the same afterwards."""
    return _JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
