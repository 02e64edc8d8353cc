"""Names in one text, with commas between, as settings hold them."""

from __future__ import annotations


def names_in(text: str) -> list[str]:
    """The names, without spaces around them."""
    return [name for each in text.split(",") if (name := each.strip())]
