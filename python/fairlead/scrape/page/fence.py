"""Fenced blocks of code, for text that is unchanged in markdown."""

from __future__ import annotations

import re
from typing import Final

_RUNS: Final = re.compile("`{3,}")


def fenced(text: str, name: str = "") -> str:
    """A block of code of this name, between marks that the text does not hold."""
    fence = "`" * max([3, *(len(run) + 1 for run in _RUNS.findall(text))])
    return f"{fence}{name}\n{text}\n{fence}"
