"""The wire shapes that all of OpenAI's endpoints share: an error, and one model of the list."""

from typing import Any

from fairlead.standin.answer import CREATED_S

_KINDS = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


def error(
    status: int, message: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """An error body; `code` is the status's own where none is given."""
    fallback = "server_error" if status >= 500 else "invalid_request_error"
    kind, usual_code = _KINDS.get(status, (fallback, None))
    return {"error": {"message": message, "type": kind, "param": param, "code": code or usual_code}}


def model(name: str) -> dict[str, Any]:
    """One model, as `/v1/models` describes it."""
    return {"id": name, "object": "model", "created": CREATED_S, "owned_by": "fairlead"}
