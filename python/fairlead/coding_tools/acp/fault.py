"""Errors of this provider, in the shape of OpenAI's.

A fault of one tool has a status that blames the request: the relay would otherwise put the connection, and with
it every other tool, into cooldown.
"""

from __future__ import annotations

from typing import Final

import orjson

FAILED_TOOL: Final = 424
"""The tool is not installed, not signed in, ended or broke its protocol."""


class AcpFault(Exception):
    """An error answer. `message` is for the caller, `retry_after_s` becomes `Retry-After`."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s

    def body(self) -> bytes:
        """The JSON of the answer."""
        error = {"message": self.message, "type": "invalid_request_error", "code": self.code}
        return orjson.dumps({"error": {**error, "param": self.param}})


def bad_request(message: str, param: str) -> AcpFault:
    """The fault of a field."""
    return AcpFault(400, "invalid_request", message, param=param)
