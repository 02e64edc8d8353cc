"""Messages on a terminal are sentences that begin with a capital letter, as those of the API are."""

from __future__ import annotations

import re
from typing import Final

_FIRST_WORD: Final = re.compile(r"[a-z]+(?=[ ,])")
"""A name of a field, an option, an address or a quoted name is no such word, and stays as it is spelled."""


def opened(sentence: str) -> str:
    """A sentence with a capital letter first."""
    word = _FIRST_WORD.match(sentence)
    return sentence if word is None else word[0].capitalize() + sentence[word.end() :]
