"""Failures: requests that the stand-in refuses, and those that a directive makes it fail."""

from typing import Final

FAULT_MESSAGE: Final = "The stand-in was asked to fail."
"""The message of every error that a directive asks for."""


class InvalidRequest(ValueError):
    """A request that the provider would answer with 400.

    `param` names the field and `code` the reason, as OpenAI's errors do.
    """

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
