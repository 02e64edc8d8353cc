"""Errors in OAuth's form: `{"error", "error_description"}`, never cached (RFC 6749, 5.2)."""

from __future__ import annotations

import re
from typing import Any

import orjson
from fastapi import Response

NEVER_CACHED = {"cache-control": "no-store", "pragma": "no-cache"}
TOO_MANY = "too many attempts; try again later"


class OAuthFault(Exception):
    """An answer other than success. `code` is a name of the standards."""

    def __init__(
        self, code: str, description: str, *, status: int = 400, retry_after_s: int | None = None
    ) -> None:
        super().__init__(description)
        self.code = code
        # RFC 6749 allows visible ASCII without quotes and backslashes.
        self.description = re.sub(r"[^ !#-\[\]-~]", "'", description)
        self.status = status
        self.retry_after_s = retry_after_s

    def answer(self) -> Response:
        """The HTTP answer for this error."""
        answer = json_answer(
            {"error": self.code, "error_description": self.description}, self.status
        )
        if self.retry_after_s is not None:
            answer.headers["retry-after"] = str(self.retry_after_s)
        return answer


def json_answer(body: dict[str, Any], status: int = 200) -> Response:
    """A JSON answer that is not cached."""
    return Response(orjson.dumps(body), status, NEVER_CACHED, "application/json")
