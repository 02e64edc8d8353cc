"""A refused request, in the error form of each vendor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refusal(Exception):
    """The provider refuses the request with this status and body."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body


def anthropic(message: str, kind: str = "invalid_request_error", status: int = 400) -> Refusal:
    error = {"type": kind, "message": message}
    return Refusal(status, {"type": "error", "error": error, "request_id": "req_referee"})


def openai(
    message: str, code: str | None = None, param: str | None = None, status: int = 400
) -> Refusal:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Refusal(status, {"error": error})


def google(message: str, status: int = 400) -> Refusal:
    name = "INVALID_ARGUMENT" if status == 400 else "NOT_FOUND"
    return Refusal(status, {"error": {"code": status, "message": message, "status": name}})


def amazon(message: str) -> Refusal:
    return Refusal(400, {"message": message})


def extra_forbidden(member: str) -> Refusal:
    """Mistral's and NVIDIA's answer to an unknown member."""
    detail = {
        "type": "extra_forbidden",
        "loc": ["body", *member.split(".")],
        "msg": "Extra inputs are not permitted",
    }
    return Refusal(422, {"detail": [detail]})


def mistral(message: str, code: str, kind: str = "invalid_request_error") -> Refusal:
    body = {"object": "error", "message": message, "type": kind, "param": None, "code": code}
    return Refusal(400, body)
