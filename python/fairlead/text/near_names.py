"""Known names that are spelled almost as one that is not known, for "Did you mean ...?"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_MOST: Final = 3
_LONGEST: Final = 300
"""Comparing takes time that grows with the lengths: a longer name is none that was mistyped."""


def near_names(wanted: str, known: Iterable[str]) -> list[str]:
    """The nearest known names, whatever their case; a model's name without its prefix finds the whole one."""
    if len(wanted) > _LONGEST:
        return []
    by_spelling = {name.lower(): name for name in known if len(name) <= _LONGEST}
    lowered = wanted.lower()
    behind_prefix = [
        name for spelled, name in by_spelling.items() if spelled.endswith(f"/{lowered}")
    ]
    if behind_prefix:
        return sorted(behind_prefix)[:_MOST]
    return [by_spelling[each] for each in get_close_matches(lowered, by_spelling, _MOST)]


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """The question with a leading blank, to follow a sentence; empty if no name is near."""
    names = [f"`{name}`" for name in near_names(wanted, known)]
    if not names:
        return ""
    *first, last = names
    return f" Did you mean {', '.join(first)} or {last}?" if first else f" Did you mean {last}?"
