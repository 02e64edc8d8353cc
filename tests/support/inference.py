"""One example of every inference route, for tests that hold all of them to one rule.

The routes themselves come from the gateway's table, so a new one without an example here is found out:
`tests/integration/test_policy_matrix.py` fails and names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fairlead import _core

Body = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """How a route is called. `body` makes the body for a model; None for a route without one.

    `path` takes the place of a path with braces. `is_free` is for what no provider is paid for, so that limits of
    money and tokens do not hold it back.
    """

    body: Callable[[str], Body] | None = None
    path: str | None = None
    is_free: bool = False


def _chat(model: str) -> Body:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}]}


def _messages(model: str) -> Body:
    return {**_chat(model), "max_tokens": 16}


EXAMPLES: Final[dict[str, Example]] = {
    "POST /v1/chat/completions": Example(_chat),
    "POST /v1/messages": Example(_messages),
    "POST /v1/messages/count_tokens": Example(_chat, is_free=True),
    "GET /v1/models": Example(is_free=True),
    "GET /v1/models/{*id}": Example(path="/v1/models/none", is_free=True),
}


def inference_routes() -> list[str]:
    """`<method> <path>` of every route of the tier `inference`, in the table's order."""
    return [
        f"{route['method']} {route['path']}"
        for route in _core.routes()
        if route["tier"] == "inference"
    ]
