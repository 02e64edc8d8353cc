"""The difference of two untrusted texts: the part between their common beginning and end.

No finer comparison: one that finds several differences takes the square of the words or more, and both texts are of a
stranger's choice.
"""

from __future__ import annotations

import re

Marked = list[tuple[str, bool]]


def differences(one: str, other: str) -> tuple[Marked, Marked]:
    """Both texts in parts, each with whether it is what the other text has not."""
    ours, theirs = _words(one), _words(other)
    shorter = min(len(ours), len(theirs))
    begin = 0
    while begin < shorter and ours[begin] == theirs[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and ours[-1 - end] == theirs[-1 - end]:
        end += 1
    return _marked(ours, begin, end), _marked(theirs, begin, end)


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", text)


def _marked(words: list[str], begin: int, end: int) -> Marked:
    until = len(words) - end
    parts = (
        ("".join(words[:begin]), False),
        ("".join(words[begin:until]), True),
        ("".join(words[until:]), False),
    )
    return [part for part in parts if part[0]]
