"""How a message begins on a terminal: `fairlead: `, then a sentence with a capital letter, as the API writes them."""

from __future__ import annotations

import re
from typing import Final

_FIRST_WORD: Final = re.compile(r"[a-z]+(?=[ ,])")
"""A name of a field, an option, an address or a quoted name is no such word, and stays as it is spelled."""


def failure_line(sentence: str) -> str:
    """The line that says why a command failed."""
    return f"fairlead: {opened(sentence)}"


def opened(sentence: str) -> str:
    """A sentence with a capital letter first."""
    word = _FIRST_WORD.match(sentence)
    return sentence if word is None else word[0].capitalize() + sentence[word.end() :]
