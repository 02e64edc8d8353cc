"""Why an instance did not come up, although nothing stood in its way."""

from __future__ import annotations


class StartFailed(Exception):
    """`sentence` says what did not come up; the log on stderr says why."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
