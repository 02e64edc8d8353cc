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

    `path` takes the place of a path with braces; `{model}` in it is the model. `file` is the name of the part of a form
    that is a file: then the body is the form's fields. `is_free` is for what no provider is paid for, so that limits of
    money and tokens do not hold it back. `is_talk` is for conversations that say in the body whether they are a stream.
    `passes` are the answers of a call that got through the gate: what is behind it may be missing, or say
    something else. `dialect` is that of the providers that are asked. `is_owned`
    is for what belongs to a key, so that one which is not in force is nobody's: 401.
    """

    body: Callable[[str], Body] | None = None
    path: str | None = None
    file: str | None = None
    is_free: bool = False
    is_talk: bool = False
    passes: tuple[int, ...] = (200, 404)
    dialect: str = "openai"
    is_owned: bool = False


def _chat(model: str) -> Body:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}]}


def _messages(model: str) -> Body:
    return {**_chat(model), "max_tokens": 16}


def _with(**fields: Any) -> Callable[[str], Body]:
    return lambda model: {"model": model, **fields}


def _gemini(_: str) -> Body:
    return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def _video(_: str) -> Body:
    return {"instances": [{"prompt": "a boat"}]}


def _gemini_examples(folder: str) -> dict[str, Example]:
    path = f"/{folder}/models/{{model}}"
    return {
        f"POST /{folder}/models/{{*id}}:generateContent": Example(
            _gemini, path=f"{path}:generateContent"
        ),
        f"POST /{folder}/models/{{*id}}:streamGenerateContent": Example(
            _gemini, path=f"{path}:streamGenerateContent", passes=(200, 502, 404)
        ),
        f"POST /{folder}/models/{{*id}}:embedContent": Example(
            lambda _: {"content": {"parts": [{"text": "hi"}]}},
            path=f"{path}:embedContent",
            passes=(502, 404),
        ),
        f"POST /{folder}/models/{{*id}}:batchEmbedContents": Example(
            lambda _: {"requests": [{"content": {"parts": [{"text": "hi"}]}}]},
            path=f"{path}:batchEmbedContents",
        ),
        f"POST /{folder}/models/{{*id}}:predictLongRunning": Example(
            _video, path=f"{path}:predictLongRunning", dialect="gemini", is_owned=True
        ),
        f"POST /{folder}/models/{{*id}}:countTokens": Example(
            _gemini, path=f"{path}:countTokens", is_free=True
        ),
    }


EXAMPLES: Final[dict[str, Example]] = {
    "POST /v1/chat/completions": Example(_chat, is_talk=True),
    "GET /v1/chat/completions": Example(is_free=True),
    "POST /v1/messages": Example(_messages, is_talk=True),
    "POST /v1/responses": Example(_with(input="hi", store=False), is_talk=True),
    "POST /v1/responses/input_tokens": Example(_with(input="hi"), is_free=True),
    "POST /v1/responses/compact": Example(_with(input="hi"), dialect="openai-responses"),
    "GET /v1/responses/{id}": Example(path="/v1/responses/none", is_free=True),
    "DELETE /v1/responses/{id}": Example(path="/v1/responses/none", is_free=True),
    "POST /v1/responses/{id}/cancel": Example(path="/v1/responses/none/cancel", is_free=True),
    "GET /v1/responses/{id}/input_items": Example(
        path="/v1/responses/none/input_items", is_free=True
    ),
    "POST /v1/conversations": Example(lambda _: {"metadata": {}}, is_free=True),
    "GET /v1/conversations/{id}": Example(path="/v1/conversations/conv_none", is_free=True),
    "POST /v1/conversations/{id}": Example(
        lambda _: {"metadata": {}}, path="/v1/conversations/conv_none", is_free=True
    ),
    "DELETE /v1/conversations/{id}": Example(path="/v1/conversations/conv_none", is_free=True),
    "GET /v1/conversations/{id}/items": Example(
        path="/v1/conversations/conv_none/items", is_free=True
    ),
    "POST /v1/conversations/{id}/items": Example(
        lambda _: {"items": [{"type": "message", "role": "user", "content": "hi"}]},
        path="/v1/conversations/conv_none/items",
        is_free=True,
    ),
    "GET /v1/conversations/{id}/items/{item}": Example(
        path="/v1/conversations/conv_none/items/msg_none", is_free=True
    ),
    "DELETE /v1/conversations/{id}/items/{item}": Example(
        path="/v1/conversations/conv_none/items/msg_none", is_free=True
    ),
    **_gemini_examples("v1beta"),
    **_gemini_examples("v1"),
    "GET /v1beta/models": Example(is_free=True),
    "GET /v1beta/models/{*id}": Example(path="/v1beta/models/none", is_free=True),
    "POST /v1/completions": Example(_with(prompt="hi"), is_talk=True),
    "POST /v1/embeddings": Example(_with(input="hi")),
    "POST /v1/images/generations": Example(_with(prompt="a boat")),
    "POST /v1/images/edits": Example(_with(prompt="a boat"), file="image"),
    "POST /v1/moderations": Example(_with(input="hi")),
    "POST /v1/rerank": Example(_with(query="hi", documents=["ho"])),
    "POST /v1/ocr": Example(
        _with(document={"type": "document_url", "document_url": "https://x.example/a.pdf"})
    ),
    "POST /v1/audio/speech": Example(_with(input="hi", voice="alloy"), passes=(502, 404)),
    "POST /v1/audio/transcriptions": Example(_with(), file="file"),
    "POST /v1/audio/translations": Example(_with(), file="file"),
    "POST /v1/classify": Example(_with(input=["hi"], labels=["a", "b"])),
    "POST /v1/music/generations": Example(_with(prompt="a boat")),
    "POST /v1/videos": Example(_with(prompt="a boat"), is_owned=True),
    "POST /v1/videos/generations": Example(_with(prompt="a boat"), is_owned=True),
    # What it begins is asked for through the first of these.
    "POST /v1/videos/{id}/remix": Example(
        lambda _: {"prompt": "a boat"}, path="/v1/videos/none/remix", is_free=True, is_owned=True
    ),
    "POST /ollama/api/chat": Example(lambda model: {**_chat(model), "stream": False}),
    "POST /ollama/api/generate": Example(_with(prompt="hi", stream=False)),
    "POST /ollama/api/embed": Example(_with(input="hi")),
    "POST /ollama/api/embeddings": Example(_with(prompt="hi")),
    "GET /ollama/api/tags": Example(is_free=True),
    "POST /ollama/api/show": Example(_with(), is_free=True),
    "GET /ollama/api/version": Example(is_free=True),
    "GET /v1/combos": Example(is_free=True),
    "GET /v1/auto-combo/{name}/candidates": Example(
        path="/v1/auto-combo/auto/candidates", is_free=True
    ),
    "POST /v1/web/fetch": Example(
        lambda _: {"url": "http://127.0.0.1:9/"}, is_free=True, is_owned=True, passes=(400,)
    ),
    "POST /v1/session-leases": Example(
        lambda _: {"action": "status"}, is_free=True, is_owned=True, passes=(403,)
    ),
    "GET /v1/ws": Example(is_free=True, passes=(200, 426)),
    "GET /v1/realtime": Example(path="/v1/realtime?model=none/m", is_free=True, passes=(200, 426)),
    "GET /v1/search": Example(path="/v1/search?query=hi", is_free=True, passes=(200, 400, 503)),
    "POST /v1/search": Example(lambda _: {"query": "hi"}, is_free=True, passes=(200, 400, 503)),
    "POST /v1/messages/count_tokens": Example(_chat, is_free=True),
    "GET /v1/models": Example(is_free=True),
    "GET /v1/models/{*id}": Example(path="/v1/models/none", is_free=True),
}


def inference_routes() -> list[str]:
    """`<method> <path>` of every route of the tier `inference`, and of those that begin a video, fetch
    a page or lease a connection for a key, in the table's order.
    """
    return [
        f"{route['method']} {route['path']}"
        for route in _core.routes()
        if route["tier"] == "inference"
        or (route["endpoint"] in ("video", "web-fetch") and route["method"] == "POST")
        or route["path"] == "/v1/session-leases"
    ]
