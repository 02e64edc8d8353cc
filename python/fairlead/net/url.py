"""Splits URLs of callers and sites in time that grows with their length.

Python normalises a host beyond ASCII before it looks for characters that must not be in it. For many combining
characters in a row that takes time by the square of their number: seconds for 30 kB, in which no other code of the
process runs. So a text beyond ASCII that is longer than any URL that fairlead reads is refused first. The other modules
split URLs by these functions alone.
"""

from __future__ import annotations

from typing import Final
from urllib import parse
from urllib.parse import SplitResult

BEYOND_ASCII_MAX_CHARS: Final = 2048


def split_url(text: str) -> SplitResult:
    """The parts of a URL. `ValueError` if it is none, or too long."""
    _check_length(text)
    return parse.urlsplit(text)


def join_url(base: str, text: str) -> str:
    """The absolute URL of a reference in a document at `base`. `ValueError` if it is none, or too long."""
    _check_length(text)
    return parse.urljoin(base, text)


def _check_length(text: str) -> None:
    if len(text) > BEYOND_ASCII_MAX_CHARS and not text.isascii():
        raise ValueError("the URL is too long")
