"""How much of a text is the wanted one: four-word shingles, as public benchmarks of article extraction count them."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

SHINGLE_WORDS: Final = 4
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Score:
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def shingles(text: str) -> Counter[tuple[str, ...]]:
    words = _WORD.findall(text)
    if not words:
        return Counter()
    return Counter(
        tuple(words[at : at + SHINGLE_WORDS])
        for at in range(max(1, len(words) - SHINGLE_WORDS + 1))
    )


def score(found: str, wanted: str) -> Score:
    a, b = shingles(found), shingles(wanted)
    both = (a & b).total()
    return Score(both / a.total() if a else 0.0, both / b.total() if b else 1.0)


def mean(scores: Iterable[Score]) -> Score:
    """Means of precision and recall; its `f1` is theirs, as the benchmarks have it."""
    kept = list(scores)
    return Score(
        statistics.mean(each.precision for each in kept),
        statistics.mean(each.recall for each in kept),
    )
