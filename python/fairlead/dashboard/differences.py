"""Two texts word by word: what the second has, and the first has not."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

# Longer texts are shown without marks: comparing takes the square of their words.
WORDS_MAX: Final = 400

Marked = list[tuple[str, bool]]


def differences(before: str, after: str) -> tuple[Marked, Marked]:
    """Both texts in parts, each with whether the other text has it not."""
    old, new = re.findall(r"\s+|\w+|[^\w\s]", before), re.findall(r"\s+|\w+|[^\w\s]", after)
    if max(len(old), len(new)) > WORDS_MAX:
        return [(before, False)], [(after, False)]
    left: Marked = []
    right: Marked = []
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        for marked, words in (
            (left, "".join(old[old_from:old_to])),
            (right, "".join(new[new_from:new_to])),
        ):
            if words:
                marked.append((words, kind != "equal"))
    return left, right
