"""Why an instance did not come up, although nothing stood in its way."""

from __future__ import annotations

from collections.abc import Iterable


class StartFailed(Exception):
    """`sentence` says what did not come up, `tail` is the end of the children's log."""

    def __init__(self, sentence: str, tail: Iterable[bytes] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.tail = list(tail)
