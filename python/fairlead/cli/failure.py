"""The failure of a command, as one sentence for the user."""

from __future__ import annotations

from fairlead.text.sentence import opened


class CommandFailed(Exception):
    """The command was tried and failed; `sentence` says why and what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = opened(sentence)


class GatewayRefused(CommandFailed):
    """The gateway refused the call; `sentence` is its own, which may begin with the name of a field."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status
