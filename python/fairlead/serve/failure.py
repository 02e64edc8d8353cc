"""The error of an instance that fails to start although all checks passed."""

from __future__ import annotations


class StartFailed(Exception):
    """Raised when a child does not come up. `sentence` names it; the log on stderr has the reason."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
