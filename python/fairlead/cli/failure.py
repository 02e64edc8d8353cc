"""The failure of a command, as one sentence for the user."""

from __future__ import annotations


class CommandFailed(Exception):
    """The command was tried and failed; `sentence` says why and what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
